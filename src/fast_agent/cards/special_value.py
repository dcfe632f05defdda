"""Values with a meaning of their own while a card is checked."""

from __future__ import annotations

from typing import Final


class Invalid:
    """The type of `INVALID`."""

    __slots__ = ()


INVALID: Final = Invalid()
"""Stands for a value that was reported and has no meaning."""


class Expanded(str):
    """A text in which variables were replaced: it may hold a secret, so messages keep it back."""

    __slots__ = ()


class Variable(Expanded):
    """A text that is one whole `${VARIABLE}`: it may still become a number or a boolean."""

    __slots__ = ()
