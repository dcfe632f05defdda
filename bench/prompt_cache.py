"""The share of a long conversation that a provider reads from its prompt cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

TURNS = 60


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure a conversation over a server that keeps prompts as Anthropic's API does."""

    def ours() -> Values:
        return setup.ours("prompt_cache.py", TURNS)

    done = compare(setup, ours, rounds=1)
    name = f"conversation of {TURNS} turns with tools: input read from the prompt cache"
    yield done.figure("share", name, "%", Goal(90, at_least=True))
