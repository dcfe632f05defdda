"""`app.map`: many messages, each in a conversation of its own, against the time the model takes."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import anyio

from bench.figure import Figure, Goal
from bench.samples import Samples
from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.setup import Setup

ITEMS = 1000
AT_ONCE = 50
MODEL_SECONDS = 0.05
RUNS = 5


def figures(setup: Setup) -> Iterator[Figure]:
    """Time `app.map`; the ideal is that the model never waits for us."""
    del setup
    yield Figure(
        name=f"app.map of {ITEMS:,} messages on a 50 ms model, {AT_ONCE} at once, over the ideal",
        unit="x",
        ours=Samples.of(anyio.run(ratios, ITEMS, RUNS)),
        goal=Goal(1.15),
    )


async def ratios(items: int, runs: int) -> list[float]:
    """Return, for each run, the time taken over that of the model alone."""
    program = FastAgent("bench", ignore_config=True)
    program.agent("ann", "Hi.", model=f"slow?seconds={MODEL_SECONDS}", default=True)
    messages = [str(number) for number in range(items)]
    ideal = -(-items // AT_ONCE) * MODEL_SECONDS
    found: list[float] = []
    async with program.run() as app:
        await app.map("ann", messages[:AT_ONCE], concurrency=AT_ONCE)
        for _ in range(runs):
            start = perf_counter()
            answers = await app.map("ann", messages, concurrency=AT_ONCE)
            found.append((perf_counter() - start) / ideal)
            if answers != messages:
                raise AssertionError("answers are not in the order of the messages")
    return found
