"""Figure: one line of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.samples import Samples


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound, inclusive.

    Args:
        bound: The most a value may be.
        at_least: Whether it is the least a value may be instead.
    """

    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What was measured, and what it stands against.

    Args:
        name: What was measured.
        unit: The unit of all its values; `x` for a ratio, empty for a count.
        ours: Our values.
        goal: What they should be, or None.
        limit: What nothing can be better than, from the same run, or None.
        peer: The peer's values from the same run, or None.
        peer_note: What the peer's differ in, or why there are none.
    """

    name: str
    unit: str
    ours: Samples
    goal: Goal | None = None
    limit: Samples | None = None
    peer: Samples | None = None
    peer_note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether our median meets the goal; None without a goal."""
        return None if self.goal is None else self.goal.met(self.ours.median)

    @property
    def higher_is_better(self) -> bool:
        """Whether a greater value is a better one."""
        return self.goal.at_least if self.goal is not None else self.unit == "/s"

    @property
    def limit_ratio(self) -> float | None:
        """How many times the limit our median is."""
        return _ratio(self.ours, self.limit)

    @property
    def peer_ratio(self) -> float | None:
        """How many times better than the peer's median ours is; below 1, how much worse."""
        if self.higher_is_better:
            return _ratio(self.ours, self.peer)
        return _ratio(self.peer, self.ours)

    def beside(self, peer: Mapping[str, Samples], name: str, note: str) -> Figure:
        """Put the peer's values beside ours, or the reason why there are none."""
        return replace(self, peer=peer.get(name), peer_note=note)


def _ratio(upper: Samples | None, lower: Samples | None) -> float | None:
    if upper is None or lower is None or lower.median == 0:
        return None
    return upper.median / lower.median
