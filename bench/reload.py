"""Reload passes over 1,000 cards, and the time from an edit until it is taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.card_directory import write_cards
from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

CARDS = 1_000
ROUNDS = 5


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure passes; the limit is listing the directory and looking at each file's state."""
    cards = write_cards(setup.work / "reload", CARDS)
    passes = 20 if setup.quick else 100

    def ours() -> Values:
        answer = setup.ours("reload.py", cards, passes)
        if answer["cards"] != CARDS:
            raise BenchError(f"{answer['cards']} of {CARDS} cards were loaded")
        last.update(answer)
        return {"idle": answer["idle"] * 1e3, "one": answer["one"] * 1e3}

    last: dict[str, float] = {}

    def limit() -> Values:
        return {"idle": last["limit"] * 1e3, "one": last["limit"] * 1e3}

    done = compare(setup, ours, limit=limit, rounds=ROUNDS)
    yield done.figure("idle", f"reload pass, {CARDS:,} cards, nothing changed", "ms", Goal(5))
    yield done.figure("one", f"reload pass, {CARDS:,} cards, one changed", "ms", Goal(8))
