"""Findings: what a soak counted, and what went wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_KEPT = 100
"""Most violations whose text is kept."""


class Findings:
    """Counts and violations.

    Args:
        clock: Seconds since the soak began.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.violation_count = 0
        self.seconds: dict[str, list[float]] = {}

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def took(self, what: str, seconds: float) -> None:
        self.seconds.setdefault(what, []).append(seconds)

    def wrong(self, what: str) -> None:
        """Note a violation: something that must never be."""
        self.violation_count += 1
        if len(self.violations) < MAX_KEPT:
            self.violations.append(f"{self._clock():7.1f} s  {what[:1600]}")

    def expect(self, held: bool, what: str) -> None:
        """Note a violation unless something held."""
        if not held:
            self.wrong(what)
