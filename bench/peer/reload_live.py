"""The peer's passes while its agents are live, and its time from an edit to an answer by it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

PATIENCE = 30.0


def write_version(cards: Path, name: str, number: int) -> None:
    """Write a card whose function gives a number."""
    tool = cards / f"tool_{number}.py"
    tool.write_text(f"def number() -> int:\n    return {number}\n", encoding="utf-8")
    text = (
        f"---\nname: {name}\ndescription: Answers.\nmodel: passthrough\n"
        f'function_tools: ["tool_{number}.py:number"]\n---\nBe brief.\n'
    )
    beside = cards / ".beside"
    beside.write_text(text, encoding="utf-8")
    beside.replace(cards / f"{name}.md")
    (cards / f"tool_{number - 2}.py").unlink(missing_ok=True)


async def passes(app: Any, card: Path, name: str, rounds: int) -> float:
    text = card.read_text(encoding="utf-8")  # noqa: ASYNC240
    seconds: list[float] = []
    for number in range(rounds):
        await app.send("hi", agent_name=name)
        card.write_text(f"{text}Round {number}.\n", encoding="utf-8")  # noqa: ASYNC240
        begun = time.perf_counter()
        changed = await app.reload_agents()
        seconds.append(time.perf_counter() - begun)
        if not changed:
            sys.exit("a pass did not take the change")
    return median(seconds)


async def edits(app: Any, cards: Path, name: str, rounds: int) -> float:
    seconds: list[float] = []
    await asyncio.sleep(1)
    for number in range(1, rounds + 1):
        begun = time.perf_counter()
        write_version(cards, name, number)
        while True:
            answer = await app.send("***CALL_TOOL number {}", agent_name=name)
            if str(number) == answer.strip():
                break
            if time.perf_counter() - begun > PATIENCE:
                sys.exit(f"no new answer, but {answer[:60]!r}")
            await asyncio.sleep(0.001)
        seconds.append(time.perf_counter() - begun)
        await asyncio.sleep(0.1)
    return median(seconds)


async def measure(fast: Any, cards: Path, name: str, rounds: int) -> dict[str, float]:
    fast.args.reload = True
    async with fast.run() as app:
        live = await passes(app, cards / f"{name}.md", name, rounds)
    fast.args.watch = True
    async with fast.run() as app:
        edit = await edits(app, cards, name, rounds)
    return {"live": live, "edit": edit}


def main(directory: str, name: str, rounds: int) -> None:
    # Imported by name, because type checkers know our package of that name only.
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)
    names = fast.load_agents(directory)
    figures = asyncio.run(measure(fast, Path(directory), name, rounds))
    print(json.dumps({"cards": len(names), **figures}))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
