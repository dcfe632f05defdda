"""Time the peer's turns of a chain, of ten agents at once, and of an agent as a tool of another."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from statistics import median
from typing import Any

BATCH = 5
CALL = '***CALL_TOOL agent__m0 {"message": "hi"}'


async def measure(agent: Any, message: str, turns: int) -> float:
    """Return the median processor seconds of a turn, over batches."""
    times: list[float] = []
    for _ in range(max(turns // BATCH, 2)):
        said = ""
        start = time.process_time()
        for _ in range(BATCH):
            said = await agent.send(message)
        times.append((time.process_time() - start) / BATCH)
        if "hi" not in said:
            sys.exit(f"the answer is {said!r}")
    return median(times)


async def run(fast: Any, turns: int) -> dict[str, float]:
    """Measure each."""
    async with fast.run() as app:
        chain = await measure(app.line, "hi", turns)
        parallel = await measure(app.fan, "hi", turns // 5)
        child = await measure(app.boss, CALL, turns)
    return {"chain": chain, "parallel": parallel, "child": child}


def main(turns: int) -> None:
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)

    async def nothing() -> None:
        pass

    names = [f"m{number}" for number in range(10)]
    for name in names:
        fast.agent(name, instruction="Repeat.", model="passthrough", use_history=False)(nothing)
    boss = fast.agent("boss", model="passthrough", use_history=False, agents=["m0"])
    boss(nothing)
    fast.chain("line", sequence=names[:3])(nothing)
    fast.parallel("fan", fan_out=names)(nothing)
    print(json.dumps(asyncio.run(run(fast, turns))))


main(int(sys.argv[1]))
