"""An estimate of how many tokens a text takes, made without any model's tokenizer."""

from __future__ import annotations

CHARACTERS_PER_TOKEN = 4


def estimate(characters: int) -> int:
    """Estimate tokens of a text with this many characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
