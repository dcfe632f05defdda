"""Hold the peer's conversation with a tool over a server that keeps prompts.

usage: prompt_cache.py PORT TURNS
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


async def look_up(n: int) -> str:
    """Look something up.

    Args:
        n: What is looked up.
    """
    return f"Row {n} of the table. " * 40


async def run(fast: Any, turns: int) -> None:
    """Ask the questions."""
    async with fast.run() as app:
        for number in range(turns):
            await app.ann.send(f"Question {number}: what is in the next row?")


def main(port: int, turns: int) -> None:
    address = f"http://127.0.0.1:{port}"
    Path("fastagent.config.yaml").write_text(
        f"anthropic: {{base_url: '{address}', api_key: none}}\n"
    )
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)
    rules = "".join(f"Rule {number}: be brief and exact. " for number in range(100))

    async def nothing() -> None:
        pass

    model = "anthropic.claude-sonnet-4-6"
    fast.agent("ann", instruction=rules, model=model, function_tools=[look_up])(nothing)
    asyncio.run(run(fast, turns))
    print(json.dumps({"turns": turns}))


main(int(sys.argv[1]), int(sys.argv[2]))
