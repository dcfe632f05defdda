"""Tools of the clerk: plain functions, described by their hints and docstrings."""

from __future__ import annotations

from datetime import date  # noqa: TC003 - the schema of the tool is made from it


def word_count(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text to count.
    """
    return len(text.split())


async def days_between(first: date, last: date) -> int:
    """Count the days from one date to another.

    Args:
        first: The earlier date, such as 2026-01-31.
        last: The later date.
    """
    return (last - first).days
