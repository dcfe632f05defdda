"""Replays of recorded runs: the same bytes whatever the order of tasks, and nothing opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.setup import Setup

REPLAYS, QUICK_REPLAYS = 1_000, 100


def figures(setup: Setup) -> Iterator[Figure]:
    """Record every example once and replay them, tasks in a random order each time."""
    replays = QUICK_REPLAYS if setup.quick else REPLAYS
    answer = setup.ours("replay.py", replays)
    same = f"replays of {replays:,} in random task order that give the same bytes"
    yield _figure(same, "", answer["same"], Goal(replays, at_least=True))
    yield _figure("sockets and programs they open", "", answer["opened"], Goal(0))
    yield _figure("orders of events seen in them", "", answer["orders"])
    yield _figure("replays of the examples", "/s", replays / answer["seconds"])


def _figure(name: str, unit: str, value: float, goal: Goal | None = None) -> Figure:
    return Figure(name=name, unit=unit, ours=Samples((value,)), goal=goal)
