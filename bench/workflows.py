"""Turns of workflows with the passthrough model: what the runtime costs when agents combine."""

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


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure a chain of three, ten agents at once, and an agent that calls another as a tool.

    Rates are turns in a second of processor time: nothing here waits for anything.
    """
    turns = 200 if setup.quick else 2_000
    peer_turns = 20 if setup.quick else 100

    def ours() -> Values:
        return _rates(setup.ours("workflows.py", turns))

    def theirs(peer: Peer) -> Values:
        return _rates(setup.theirs(peer, "workflows.py", peer_turns))

    done = compare(setup, ours, peer=theirs, rounds=ROUNDS)
    three, one = Goal(3_000, at_least=True), Goal(1_000, at_least=True)
    yield done.figure("chain", "turns of a chain of 3 agents", "/s", three)
    yield done.figure("parallel", "turns of 10 agents at once", "/s", one)
    yield done.figure("child", "turns that call an agent as a tool", "/s", three)


def _rates(seconds: dict[str, float]) -> Values:
    return {name: 1 / value for name, value in seconds.items()}
