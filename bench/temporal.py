"""Runs on a Temporal server: what a step costs its workers, and what a history holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.temporal_server import TemporalServer, why_not

from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 2


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure runs of three steps beside bare activities, on a server of their own."""
    reason = why_not()
    if reason is not None:
        raise BenchError(reason)
    runs, turns = (40, 60) if setup.quick else (200, 200)
    names = (str(setup.work / f"temporal-{number}") for number in range(1_000))

    def ours() -> Values:
        with TemporalServer(in_memory=True) as server:
            return setup.ours("temporal.py", server.address, next(names), runs, turns)

    done = compare(setup, ours, rounds=ROUNDS)
    yield done.figure("bare_work", "three bare activities, in processor time of their worker", "ms")
    yield done.figure("above", "a step of a run above a bare activity", "ms", Goal(12))
    yield done.figure("remote_work", "a run of three steps, all activities", "ms", Goal(60))
    yield done.figure("remote_rate", "such runs on one server", "/s")
    yield done.figure("local_work", "the same with a local tool", "ms", Goal(30))
    yield done.figure("local_rate", "such runs on one server", "/s")
    yield done.figure("bytes", "history of a turn", "bytes", Goal(6_000))
    yield done.figure("bare_replay", "1,000 bare activities replayed by the SDK alone", "s")
    yield done.figure("replay", "1,000 turns replayed, in processor time", "s", Goal(1))
