"""Time turns of a chain, of ten agents at once, and of an agent with another as its tool."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent

if TYPE_CHECKING:
    from fast_agent.agents.agent import Agent

BATCH = 10
CALL = '***CALL_TOOL agent__m0 {"message": "hi"}'


async def measure(agent: Agent, message: str, turns: int) -> float:
    """Return the median processor seconds of a turn, over batches of ten."""
    times: list[float] = []
    for _ in range(max(turns // BATCH, 2)):
        said = ""
        start = time.process_time()
        for _ in range(BATCH):
            said = await agent.send(message)
        times.append((time.process_time() - start) / BATCH)
        if said.count("hi") != (10 if agent.name == "fan" else 1):
            sys.exit(f"the answer of {agent.name} is {said!r}")
        agent.clear(all=True)
    return median(times)


async def main(turns: int) -> None:
    fast = FastAgent("bench", ignore_config=True)
    names = [f"m{number}" for number in range(10)]
    for name in names:
        fast.agent(name, "Repeat.", model="passthrough", use_history=False)
    fast.agent("boss", "Call.", model="passthrough", use_history=False, agents=["m0"])
    fast.chain("line", sequence=names[:3])
    fast.parallel("fan", fan_out=names)
    async with fast.run() as app:
        chain = await measure(app["line"], "hi", turns)
        parallel = await measure(app["fan"], "hi", turns // 5)
        child = await measure(app["boss"], CALL, turns)
    print(json.dumps({"chain": chain, "parallel": parallel, "child": child}))


anyio.run(main, int(sys.argv[1]))
