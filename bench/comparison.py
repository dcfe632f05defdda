"""Comparison: one thing measured of ours, of the limit and of the peer, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bench.figure import Figure, Goal
from bench.process import BenchError
from bench.samples import Samples, interleave

if TYPE_CHECKING:
    from bench.setup import Peer, Setup

Values: TypeAlias = Mapping[str, float]
"""What one measurement gives: values by name."""

_OURS, _LIMIT, _PEER = "ours", "limit", "peer"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The values of each side, by name.

    Args:
        ours: Our values.
        limit: Those of the limit; empty where there is none.
        peer: The peer's; empty where there is none.
        peer_note: Why the peer has none.
    """

    ours: Mapping[str, Samples]
    limit: Mapping[str, Samples]
    peer: Mapping[str, Samples]
    peer_note: str = ""

    def figure(
        self, value: str, name: str, unit: str, goal: Goal | None = None, *, note: str = ""
    ) -> Figure:
        """Make a line of the table of the values called `value`.

        Args:
            value: Their name; where the peer or the limit has none of it, its cell stays empty.
            name: What the line is called.
            unit: The unit of the values.
            goal: What ours should be.
            note: What the peer's value differs in.
        """
        peer = self.peer.get(value)
        return Figure(
            name=name,
            unit=unit,
            ours=self.ours[value],
            goal=goal,
            limit=self.limit.get(value),
            peer=peer,
            peer_note=self.peer_note if peer is None else note,
        )


def compare(
    setup: Setup,
    ours: Callable[[], Values],
    *,
    limit: Callable[[], Values] | None = None,
    peer: Callable[[Peer], Values] | None = None,
    rounds: int,
) -> Comparison:
    """Measure ours, the limit and the peer in turn, after a round that does not count.

    Args:
        setup: How to measure.
        ours: Measures ours.
        limit: Measures the limit.
        peer: Measures the peer; not called where there is none.
        rounds: How many values of each are kept.

    Raises:
        BenchError: Ours or the limit could not be measured. What the peer cannot do becomes a note.
    """
    measures: dict[str, Callable[[], Values]] = {_OURS: ours}
    if limit is not None:
        measures[_LIMIT] = limit
    note = setup.peer_note if peer is not None else ""
    trial = None
    if peer is not None and setup.peer is not None:
        trial = _Trial(peer, setup.peer)
        measures[_PEER] = trial
    values = interleave(measures, rounds=setup.rounds(rounds))
    if trial is not None and trial.failure:
        values[_PEER], note = [], f"failed: {trial.failure}"
    sides = {side: by_name(values.get(side, [])) for side in (_OURS, _LIMIT, _PEER)}
    return Comparison(sides[_OURS], sides[_LIMIT], sides[_PEER], note)


class _Trial:
    """The peer's measurement, given up after its first failure."""

    def __init__(self, measure: Callable[[Peer], Values], peer: Peer) -> None:
        self._measure = measure
        self._peer = peer
        self.failure = ""

    def __call__(self) -> Values:
        if self.failure:
            return {}
        try:
            return self._measure(self._peer)
        except BenchError as error:
            self.failure = str(error).splitlines()[-1][:120]
            return {}


def by_name(rounds: list[Values]) -> dict[str, Samples]:
    """Gather the values of several rounds by their names."""
    if not rounds:
        return {}
    return {name: Samples.of(values[name] for values in rounds) for name in rounds[0]}
