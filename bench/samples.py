"""Samples: what was measured several times."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of one figure in one unit, at least one."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Samples:
        """Make samples; raises ValueError where there is none."""
        samples = cls(tuple(values))
        if not samples.values:
            raise ValueError("no samples")
        return samples

    @property
    def median(self) -> float:
        """The middle value."""
        return median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)


def interleave(
    measures: Mapping[str, Callable[[], T]], *, rounds: int, warm: int = 1
) -> dict[str, list[T]]:
    """Measure several things in turn, A B A B, so that the drift of the machine hits all alike.

    Args:
        measures: What to measure, by name.
        rounds: How many values of each are kept.
        warm: How many rounds come before and are thrown away.

    Returns:
        The values by name, in the order they were measured.
    """
    values: dict[str, list[T]] = {name: [] for name in measures}
    for number in range(warm + rounds):
        for name, measure in measures.items():
            value = measure()
            if number >= warm:
                values[name].append(value)
    return values
