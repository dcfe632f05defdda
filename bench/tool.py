"""Turns that call a Python function: the model asks, the function runs, the model answers.

A turn with an `async def` waits for nothing, so its rate is turns in a second of processor time.
One with a `def` waits for a thread to wake and to answer, so that its rate is by the clock; what it
costs beside that waiting is told too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

ROUNDS = 7


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure turns with a function that is `async def` and one that is `def`."""
    turns = 500 if setup.quick else 4_000
    peer_turns = 20 if setup.quick else 100

    def ours() -> Values:
        answer = setup.ours("tool.py", turns)
        return {**_rates(answer), "hops": answer["sync"] / answer["hop"]}

    def theirs(peer: Peer) -> Values:
        return _rates(setup.theirs(peer, "tool.py", peer_turns))

    done = compare(setup, ours, peer=theirs, rounds=ROUNDS)
    goal = Goal(4_000, at_least=True)
    yield done.figure("async", "function-tool turns, `async def`", "/s", goal)
    yield done.figure("sync", "function-tool turns, `def` (runs in a thread)", "/s", goal)
    yield done.figure("work", "the same by processor time, of both threads", "/s", goal)
    yield done.figure("hops", "the same, in bare thread calls of the standard library", "x")


def _rates(answer: dict[str, float]) -> Values:
    return {name: 1 / answer[name] for name in ("async", "sync", "work")}
