"""Loading a directory of cards in a process that has loaded none before."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.card_directory import write_cards
from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

ROUNDS = 7
GOALS = {1_000: 150, 5_000: 800}


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure loading; the limit is reading the bytes of the same files."""
    for count, goal in GOALS.items():
        if setup.quick and count > min(GOALS):
            continue
        cards = write_cards(setup.work / f"load-{count}", count)
        done = compare(
            setup,
            partial(_load, setup, cards, count),
            limit=partial(_read, setup, cards, count),
            peer=partial(_load_theirs, setup, cards, count),
            rounds=ROUNDS,
        )
        yield done.figure("load", f"load and check {count:,} cards", "ms", Goal(goal))


def _load(setup: Setup, cards: Path, count: int) -> Values:
    return _milliseconds(setup.ours("load.py", cards), count)


def _read(setup: Setup, cards: Path, count: int) -> Values:
    return _milliseconds(setup.ours("read.py", cards), count)


def _load_theirs(setup: Setup, cards: Path, count: int, peer: Peer) -> Values:
    return _milliseconds(setup.theirs(peer, "load.py", cards), count)


def _milliseconds(answer: dict[str, Any], count: int) -> Values:
    if answer["cards"] != count:
        raise BenchError(f"{answer['cards']} of {count} cards were loaded")
    return {"load": answer["seconds"] * 1e3}
