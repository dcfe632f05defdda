"""Hold a conversation with a tool over a server that keeps prompts.

usage: prompt_cache.py PORT TURNS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio

from fast_agent import FastAgent


def look_up(n: int) -> str:
    """Look something up.

    Args:
        n: What is looked up.
    """
    return f"Row {n} of the table. " * 40


async def main(turns: int) -> None:
    fast = FastAgent("bench", config_path="fast-agent.yaml")
    rules = "".join(f"Rule {number}: be brief and exact. " for number in range(100))
    model, params = "anthropic.claude-sonnet-4-6", {"max_tokens": 1000}
    fast.agent("ann", rules, model=model, function_tools=[look_up], request_params=params)
    async with fast.run() as app:
        for number in range(turns):
            await app["ann"].send(f"Question {number}: what is in the next row?")
    print(json.dumps({"turns": turns}))


address = f"http://127.0.0.1:{sys.argv[1]}"
Path("fast-agent.yaml").write_text(f"anthropic: {{base_url: '{address}', api_key: none}}\n")
anyio.run(main, int(sys.argv[2]))
