"""Reload passes over 1,000 cards, with live agents too, and edits until there is a new answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.card_directory import write_cards
from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

CARDS = 1_000
ROUNDS = 5
EDITED = "agent-0333"

_LIVE = """\
---
name: {name}
description: Answers.
model: passthrough
---
You are the agent {name}. Be brief.
"""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure passes; the limit is listing the directory and looking at each file's state."""
    yield from _passes(setup)
    yield from _live(setup)


def _passes(setup: Setup) -> Iterator[Figure]:
    cards = write_cards(setup.work / "reload", CARDS)
    passes = 20 if setup.quick else 100
    last: dict[str, float] = {}

    def ours() -> Values:
        answer = _checked(setup.ours("reload.py", cards, passes))
        last.update(answer)
        return _milliseconds(answer, "idle", "idle_cpu", "one", "one_cpu")

    def limit() -> Values:
        return {"idle": last["limit"] * 1e3, "one": last["limit"] * 1e3}

    def peer(other: Peer) -> Values:
        answer = _checked(setup.theirs(other, "reload.py", cards, passes // 5))
        return _milliseconds(answer, "idle", "one")

    done = compare(setup, ours, limit=limit, peer=peer, rounds=ROUNDS)
    pass_ = f"reload pass, {CARDS:,} cards"
    yield done.figure("idle", f"{pass_}, nothing changed", "ms", Goal(5))
    yield done.figure("idle_cpu", f"{pass_}, nothing changed, processor time", "ms")
    yield done.figure("one", f"{pass_}, one changed", "ms", Goal(8))
    yield done.figure("one_cpu", f"{pass_}, one changed, processor time", "ms")


def _live(setup: Setup) -> Iterator[Figure]:
    sides = {side: _write_live(setup.work / f"reload-{side}") for side in ("ours", "peer")}
    passes = 10 if setup.quick else 40
    last: dict[str, float] = {}

    def ours() -> Values:
        answer = _checked(setup.ours("reload_live.py", sides["ours"], EDITED, passes))
        last.update(answer)
        return _milliseconds(answer, "live", "live_cpu", "edit")

    def limit() -> Values:
        return {"live": last["limit"] * 1e3}

    def peer(other: Peer) -> Values:
        answer = _checked(setup.theirs(other, "reload_live.py", sides["peer"], EDITED, passes // 4))
        return _milliseconds(answer, "live", "edit")

    done = compare(setup, ours, limit=limit, peer=peer, rounds=ROUNDS)
    pass_ = f"reload pass, {CARDS:,} cards, one changed and live"
    yield done.figure("live", pass_, "ms", Goal(8))
    yield done.figure("live_cpu", f"{pass_}, processor time", "ms")
    yield done.figure("edit", f"edit to new answer, watched, {CARDS:,} cards", "ms", Goal(80))


def _write_live(place: Path) -> Path:
    """Write cards that need nothing to run, so that the peer can have them all live."""
    cards = place / "cards"
    cards.mkdir(parents=True)
    for number in range(CARDS):
        name = f"agent-{number:04}"
        (cards / f"{name}.md").write_text(_LIVE.format(name=name), encoding="utf-8")
    return cards


def _checked(answer: dict[str, float]) -> dict[str, float]:
    if answer["cards"] != CARDS:
        raise BenchError(f"{answer['cards']} of {CARDS} cards were loaded")
    return answer


def _milliseconds(answer: dict[str, float], *names: str) -> Values:
    return {name: answer[name] * 1e3 for name in names}
