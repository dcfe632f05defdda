"""Time the peer's turns in which the model calls a Python function, without a history."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from statistics import median
from typing import Any

BATCH = 10


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sub(a: int, b: int) -> int:
    """Take one number from another."""
    return a - b


async def measure(agent: Any, message: str, answer: str, turns: int) -> tuple[float, float]:
    """Return the median seconds of a turn, by the clock and of the processor, in batches of ten."""
    times: list[float] = []
    worked: list[float] = []
    for _ in range(max(turns // BATCH, 2)):
        said = ""
        start, begun = time.perf_counter(), time.process_time()
        for _ in range(BATCH):
            said = await agent.send(message)
        worked.append((time.process_time() - begun) / BATCH)
        times.append((time.perf_counter() - start) / BATCH)
        if answer not in said:
            sys.exit(f"the answer is {said!r}")
    return median(times), median(worked)


async def run(fast: Any, turns: int) -> dict[str, float]:
    """Measure both kinds of function."""
    call = '***CALL_TOOL {} {{"a": 40, "b": 2}}'
    async with fast.run() as app:
        _, asynchronous = await measure(app.a, call.format("add"), "42", turns)
        plain, worked = await measure(app.a, call.format("sub"), "38", turns)
    return {"async": asynchronous, "sync": plain, "work": worked}


def main(turns: int) -> None:
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)

    async def nothing() -> None:
        pass

    tools = [add, sub]
    add_agent = fast.agent("a", model="passthrough", use_history=False, function_tools=tools)
    add_agent(nothing)
    print(json.dumps(asyncio.run(run(fast, turns))))


main(int(sys.argv[1]))
