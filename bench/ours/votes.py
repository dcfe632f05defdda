"""Hold votes whose draws overtake each other, for every p and k given, and count how they end."""

from __future__ import annotations

import json
import sys
from random import Random

import anyio
from anyio.lowlevel import checkpoint

from fast_agent.workflows.maker.race import Sample, hold_vote

RIGHT, WRONG = Sample("right", "right"), Sample("wrong", "wrong")
NO_END = 10**9


async def votes(p: float, k: int, runs: int) -> dict[str, float]:
    """Return how often the right answer won, and the sum and sum of squares of the draws."""
    random = Random(f"{p} {k}")
    won = drawn = squares = 0

    async def draw(_: int) -> Sample:
        sample = RIGHT if random.random() < p else WRONG
        # The wrong answers come late, each by another time.
        if sample is WRONG:
            for _ in range(random.randrange(4)):
                await checkpoint()
        return sample

    for _ in range(runs):
        verdict = await hold_vote(draw, k=k, max_samples=NO_END)
        won += verdict.winner is RIGHT
        drawn += verdict.total_samples
        squares += verdict.total_samples**2
    return {"p": p, "k": k, "runs": runs, "won": won, "draws": drawn, "squares": squares}


async def main(runs: int) -> None:
    cells = [await votes(p, k, runs) for p in (0.6, 0.7, 0.8, 0.9) for k in (2, 3, 4)]
    print(json.dumps({"cells": cells}))


anyio.run(main, int(sys.argv[1]))
