"""The cost of context accounting: turns with it, beside the same turns without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.setup import Setup

PAIRS = 20


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure passthrough and function-tool turns in pairs, in processor time."""
    found = setup.ours("accounting.py", setup.rounds(PAIRS), 100 if setup.quick else 1_000)
    for kind, name in (("passthrough", "passthrough turn"), ("tool", "function-tool turn")):
        yield Figure(
            name=f"{name}: with context accounting on, to without",
            unit="x",
            ours=Samples.of(found[kind]),
            goal=Goal(1.03),
        )
