"""Time passthrough turns around turn 10 and around a late one, by turns, in one process."""

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
BATCHES = 100


async def batch(agent: Agent) -> float:
    """Return the seconds of one turn."""
    start = time.perf_counter()
    for _ in range(BATCH):
        await agent.send("hi")
    return (time.perf_counter() - start) / BATCH


async def main(deep: int) -> None:
    fast = FastAgent("bench", ignore_config=True)
    for name in ("young", "old"):
        fast.agent(name, "Repeat.", model="passthrough")
    early: list[float] = []
    late: list[float] = []
    async with fast.run() as app:
        young, old = app["young"], app["old"]
        for _ in range(deep - BATCH * BATCHES // 2):
            await old.send("hi")
        for _ in range(BATCHES):
            young.clear(all=True)
            for _ in range(BATCH // 2):
                await young.send("hi")
            early.append(await batch(young))
            late.append(await batch(old))
        turns = len(old.history) // 2
    if turns != deep + BATCH * BATCHES // 2:
        sys.exit(f"the history holds {turns} turns")
    print(json.dumps({"early": median(early), "late": median(late)}))


anyio.run(main, int(sys.argv[1]))
