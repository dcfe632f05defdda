"""Many sessions at once: the turns of 200 agents of one program, interleaved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 7
SESSIONS = 200


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure the time of a turn among 200 sessions, against that of one session alone."""
    turns = 5 if setup.quick else 50

    def ours() -> Values:
        answer = setup.ours("sessions.py", SESSIONS, turns)
        one, many = answer["one"], answer["many"]
        return {"one": one * 1e6, "many": many * 1e6, "ratio": many / one}

    done = compare(setup, ours, rounds=ROUNDS)
    yield done.figure("one", "a turn of one session alone", "us")
    yield done.figure("many", f"a turn among {SESSIONS} sessions", "us")
    yield done.figure("ratio", f"time of a turn, {SESSIONS} sessions to one", "x", Goal(1.1))
