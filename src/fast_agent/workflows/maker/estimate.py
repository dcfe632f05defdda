"""Estimate: how often something happens, from a sample, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959963984540054
"""Standard deviations around the middle of a normal distribution that hold 95 % of it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share seen in a sample.

    Args:
        hits: How often it happened.
        trials: How often it could have; at least once.
    """

    hits: int
    trials: int

    def __add__(self, other: Estimate) -> Estimate:
        """Put two samples together."""
        return Estimate(self.hits + other.hits, self.trials + other.trials)

    @property
    def share(self) -> float:
        """How often it happened in the sample."""
        return self.hits / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence, by Wilson's score.

        It stays inside 0 to 1, and is honest about a sample in which all agreed.
        """
        n, z2 = self.trials, _Z * _Z
        middle = (self.share + z2 / (2 * n)) / (1 + z2 / n)
        spread = math.sqrt(self.share * (1 - self.share) / n + z2 / (4 * n * n))
        half = _Z * spread / (1 + z2 / n)
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        high = 1.0 if self.hits == n else min(1.0, middle + half)
        return low, high
