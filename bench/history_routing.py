"""Histories of called agents: whether any order of events breaks one, in all 25 combinations."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.process import BenchError
from bench.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.setup import Setup

TURNS, QUICK_TURNS = 10_000, 50
"""Turns of a parent with up to six calls, a combination."""

WORDS = ("none", "messages", "child", "orchestrator", "cumulative")


def figures(setup: Setup) -> Iterator[Figure]:
    """Play turns with failures, time-outs and cancellations anywhere; count broken histories."""
    turns = QUICK_TURNS if setup.quick else TURNS
    played = broken = 0
    for source, target in product(WORDS, WORDS):
        answer = setup.ours("history_routing.py", source, target, turns)
        if answer["played"] < turns:
            raise BenchError(f"only {answer['played']} turns of {source} and {target} were played")
        for problem in answer["broken"]:
            print(problem)
        played += answer["played"]
        broken += answer["count"]
    name = f"broken histories in {played:,} interleavings of called agents"
    yield Figure(name=name, unit="", ours=Samples.of([broken]), goal=Goal(0))
