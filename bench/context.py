"""Long conversations: turns until one fails, and what a compaction takes beside its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

TURNS, QUICK_TURNS = 1_000, 100


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure long conversations."""
    most = QUICK_TURNS if setup.quick else TURNS

    def ours() -> Values:
        answer = setup.ours("context.py", most)
        return {name: answer[name] for name in ("turns", "facts", "compaction")}

    def theirs(peer: Peer) -> Values:
        return {"turns": setup.theirs(peer, "context.py", most)["turns"]}

    done = compare(setup, ours, peer=theirs, rounds=1)
    goal = Goal(most, at_least=True)
    yield done.figure("turns", "turns with a result of 100 KB before one fails", "", goal)
    title = "of 100 facts in the middle of such results, those still known 50 turns later"
    yield done.figure("facts", title, "", Goal(95, at_least=True))
    yield done.figure("compaction", "compaction of 200,000 tokens beside its model", "ms", Goal(50))
