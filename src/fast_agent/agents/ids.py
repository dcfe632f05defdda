"""Ids of turns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeAlias

NewId: TypeAlias = Callable[[], str]
"""Gives a new id at each call."""


def numbered(prefix: str) -> NewId:
    """Give `prefix-1`, `prefix-2`, … : unique as long as the prefix is."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"
