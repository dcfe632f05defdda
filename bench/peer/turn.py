"""Time the peer's passthrough turns around turn 10 and around a late one.

The late history is not lived through, which would take minutes: it is a hundred turns, loaded as
often as needed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from importlib import import_module
from statistics import median
from typing import Any

BATCH = 5
EARLY_BATCHES = 6
LATE_BATCHES = 2
LIVED = 20


async def batch(agent: Any) -> float:
    """Return the seconds of one turn."""
    start = time.perf_counter()
    for _ in range(BATCH):
        await agent.send("hi")
    return (time.perf_counter() - start) / BATCH


async def measure(fast: Any, deep: int) -> tuple[float, float]:
    """Return the median seconds of an early and of a late turn."""
    early: list[float] = []
    async with fast.run() as app:
        for _ in range(EARLY_BATCHES):
            app.young.clear(clear_prompts=True)
            for _ in range(10 - BATCH // 2):
                await app.young.send("hi")
            early.append(await batch(app.young))
        for _ in range(LIVED):
            await app.old.send("hi")
        lived = list(app.old.message_history)
        app.old.load_message_history(lived * (deep // LIVED))
        late = [await batch(app.old) for _ in range(LATE_BATCHES)]
        if len(app.old.message_history) < 2 * deep:
            sys.exit("the history was not kept")
    return median(early), median(late)


def main(deep: int) -> None:
    peer: Any = import_module("fast_agent")
    fast = peer.FastAgent("bench", parse_cli_args=False, quiet=True, no_home=True)

    async def nothing() -> None:
        pass

    for name in ("young", "old"):
        fast.agent(name, instruction="Repeat.", model="passthrough")(nothing)
    early, late = asyncio.run(measure(fast, deep))
    print(json.dumps({"early": early, "late": late}))


main(int(sys.argv[1]))
