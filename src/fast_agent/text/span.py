"""Positions in a text: lines and columns, both from 1, columns in characters."""

from __future__ import annotations

from functools import total_ordering

from fast_agent.text.frozen import frozen


@total_ordering
@frozen
class Position:
    """A place between two characters.

    Args:
        line: Line number, from 1.
        column: Column in characters, from 1.
    """

    line: int
    column: int

    def __lt__(self, other: Position) -> bool:
        return (self.line, self.column) < (other.line, other.column)


@total_ordering
@frozen
class Span:
    """A stretch of text; `end` is the place just after the last character."""

    start: Position
    end: Position

    def __lt__(self, other: Span) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    @classmethod
    def at(cls, line: int, column: int, width: int = 1) -> Span:
        """Make the span of `width` characters on one line."""
        return cls(Position(line, column), Position(line, column + width))
