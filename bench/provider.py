"""A turn with a model of a provider, beside the provider's SDK alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 5


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure turns over a chat-completions server on loopback that answers at once."""
    turns = 100 if setup.quick else 1_000

    def ours() -> Values:
        found = setup.ours("provider_turn.py", turns, 0)
        long = setup.ours("provider_turn.py", turns // 10, 100)
        return {
            "turn": found["turn"] * 1e3,
            "ratio": found["turn"] / found["request"],
            "long turn": long["turn"] * 1e3,
            "long ratio": long["turn"] / long["request"],
        }

    done = compare(setup, ours, rounds=ROUNDS)
    yield done.figure("turn", "processor time of a turn with a model of a provider", "ms")
    yield done.figure("ratio", "times that of the request by the provider's SDK", "x", Goal(1.4))
    yield done.figure("long turn", "the same behind 100 messages", "ms")
    yield done.figure("long ratio", "times that of the SDK behind 100 messages", "x", Goal(0.5))
