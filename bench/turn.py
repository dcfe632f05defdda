"""Turns of the passthrough model: the cost of the program itself, early and late in a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

ROUNDS = 5
DEEP, QUICK_DEEP = 10_000, 2_000
PEER_DEEP, PEER_QUICK_DEEP = 1_000, 100


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure turns; ours at turns 10 and 10,000, the peer's at turns 10 and 1,000."""
    deep = QUICK_DEEP if setup.quick else DEEP
    peer_deep = PEER_QUICK_DEEP if setup.quick else PEER_DEEP

    def ours() -> Values:
        answer = setup.ours("turn.py", deep)
        return _values(answer["early"], answer["late"])

    def theirs(peer: Peer) -> Values:
        answer = setup.theirs(peer, "turn.py", peer_deep)
        return _values(answer["early"], answer["late"])

    done = compare(setup, ours, peer=theirs, rounds=ROUNDS)
    note = f"at turn {peer_deep:,}"
    yield done.figure("early", "passthrough turns, turn 10", "/s", Goal(10_000, at_least=True))
    yield done.figure(
        "late", f"passthrough turns, turn {deep:,}", "/s", Goal(10_000, at_least=True), note=note
    )
    yield done.figure("growth", f"time of turn {deep:,} to turn 10", "x", Goal(1.1), note=note)


def _values(early: float, late: float) -> Values:
    """Make rates of seconds a turn."""
    return {"early": 1 / early, "late": 1 / late, "growth": late / early}
