"""Growth: whether what a process holds stays level."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WARM_UP = 0.25
"""The part of a run that is not looked at: caches fill, modules are imported."""


class Growth(NamedTuple):
    """A straight line through samples.

    Args:
        samples: How many it goes through.
        level: The value where it begins.
        gain: How much higher it ends than it begins.
        minutes: The time between.
    """

    samples: int
    level: float
    gain: float
    minutes: float

    @property
    def per_minute(self) -> float:
        """How much it rises in a minute."""
        return self.gain / self.minutes if self.minutes else 0.0


def growth_of(samples: Sequence[tuple[float, float]]) -> Growth:
    """Fit a line by least squares, after the warm-up.

    Args:
        samples: Pairs of seconds and values, in the order of time.
    """
    if not samples:
        return Growth(0, 0.0, 0.0, 0.0)
    first, last = samples[0][0], samples[-1][0]
    begin = first + (last - first) * WARM_UP
    kept = [one for one in samples if one[0] >= begin]
    count = len(kept)
    mean_x = sum(x for x, _ in kept) / count
    mean_y = sum(y for _, y in kept) / count
    spread = sum((x - mean_x) ** 2 for x, _ in kept)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in kept) / spread if spread else 0.0
    span = kept[-1][0] - kept[0][0]
    level = mean_y - slope * (mean_x - kept[0][0])
    return Growth(count, level, slope * span, span / 60)
