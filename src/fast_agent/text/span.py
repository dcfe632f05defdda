"""Positions in a text: lines and columns, both from 1, columns in characters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two characters.

    Args:
        line: Line number, from 1.
        column: Column in characters, from 1.
    """

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text; `end` is the place just after the last character."""

    start: Position
    end: Position

    @classmethod
    def at(cls, line: int, column: int, width: int = 1) -> Span:
        """Make the span of `width` characters on one line."""
        return cls(Position(line, column), Position(line, column + width))
