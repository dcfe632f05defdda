"""The peer's passes over a directory of cards: nothing changed, one card changed."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any


async def measure(fast: Any, card: Path, rounds: int) -> dict[str, float]:
    text = card.read_text(encoding="utf-8")  # noqa: ASYNC240
    idle: list[float] = []
    one: list[float] = []
    for number in range(rounds):
        begun = time.perf_counter()
        if await fast.reload_agents():
            sys.exit("an idle pass changed something")
        idle.append(time.perf_counter() - begun)
        card.write_text(f"{text}\nRound {number}.\n", encoding="utf-8")  # noqa: ASYNC240
        begun = time.perf_counter()
        if not await fast.reload_agents():
            sys.exit("a pass did not take the change")
        one.append(time.perf_counter() - begun)
    card.write_text(text, encoding="utf-8")  # noqa: ASYNC240
    return {"idle": median(idle), "one": median(one)}


def main(directory: str, rounds: int) -> None:
    # Imported by name, because type checkers know our package of that name only.
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)
    names = fast.load_agents(directory)
    card = sorted(Path(directory).glob("*.md"))[len(names) // 3]
    figures = asyncio.run(measure(fast, card, rounds))
    print(json.dumps({"cards": len(names), **figures}))


main(sys.argv[1], int(sys.argv[2]))
