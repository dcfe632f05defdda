"""Time turns of many sessions that take turns, and as many turns of one session."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.agents.agent import Agent

REPEATS = 5


async def session(agent: Agent, turns: int) -> None:
    """Run turns, and let whatever else there is go on after each."""
    for _ in range(turns):
        await agent.send("hi")
        await checkpoint()


async def measure(agents: Sequence[Agent], turns: int) -> float:
    """Return the seconds of one turn of sessions that are at work at the same time."""
    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(session, agent, turns)
    return (time.perf_counter() - start) / (len(agents) * turns)


async def main(count: int, turns: int) -> None:
    fast = FastAgent("bench", ignore_config=True)
    for number in range(count + 1):
        fast.agent(f"a{number}", "Repeat.", model="passthrough", default=number == 0)
    together: list[float] = []
    alone: list[float] = []
    async with fast.run() as app:
        agents = [app[f"a{number}"] for number in range(count)]
        single = app[f"a{count}"]
        for _ in range(REPEATS):
            for agent in (*agents, single):
                agent.clear(all=True)
            together.append(await measure(agents, turns))
            alone.append(await measure([single], count * turns))
    print(json.dumps({"many": median(together), "one": median(alone)}))


anyio.run(main, int(sys.argv[1]), int(sys.argv[2]))
