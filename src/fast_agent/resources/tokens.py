"""An estimate of how many tokens a string takes, made without any model's tokenizer."""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4


def estimate(characters: int) -> int:
    """Estimate the tokens of a string with this many characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
