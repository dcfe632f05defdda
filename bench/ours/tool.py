"""Time turns in which the model calls a Python function, without a history."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent

if TYPE_CHECKING:
    from fast_agent.agents.agent import Agent

BATCH = 10


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sub(a: int, b: int) -> int:
    """Take one number from another."""
    return a - b


async def measure(agent: Agent, message: str, answer: str, turns: int) -> tuple[float, float]:
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
        if said != answer:
            sys.exit(f"the answer is {said!r}")
    return median(times), median(worked)


async def measure_hop(turns: int) -> float:
    """Return the median seconds of a call in a thread of the standard library's pool."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(max(turns // BATCH, 2)):
            start = time.perf_counter()
            for _ in range(BATCH):
                await loop.run_in_executor(pool, sub, 40, 2)
            times.append((time.perf_counter() - start) / BATCH)
    return median(times)


async def main(turns: int) -> None:
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("a", "Count.", model="passthrough", use_history=False, function_tools=[add, sub])
    async with fast.run() as app:
        call = '***CALL_TOOL {} {{"a": 40, "b": 2}}'
        _, asynchronous = await measure(app["a"], call.format("add"), "42", turns)
        plain, worked = await measure(app["a"], call.format("sub"), "38", turns)
        hop = await measure_hop(turns)
    print(json.dumps({"async": asynchronous, "sync": plain, "work": worked, "hop": hop}))


anyio.run(main, int(sys.argv[1]))
