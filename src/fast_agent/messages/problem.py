"""Problems of a history text, and the diagnostics made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, Related
from fast_agent.diagnostics.rules import DUPLICATE_HISTORY_KEY, INVALID_HISTORY_JSON
from fast_agent.errors import HistoryError
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.messages.json_text import JsonFault
    from fast_agent.text.source import Source

_MAX_SHOWN = 20_000


@frozen
class Problem:
    """A problem in a text.

    Args:
        rule: The rule it breaks.
        message: What is wrong.
        start: Offset in the text of the first character it concerns.
        end: Offset after the last.
        hint: What to do, or None.
        replacement: Text that would put it right in place of that stretch, or None.
        first: Offsets of the other place of a duplicate, or None.
    """

    rule: Rule
    message: str
    start: int
    end: int
    hint: str | None = None
    replacement: str | None = None
    first: tuple[int, int] | None = None

    @classmethod
    def of_fault(cls, fault: JsonFault, offset: int = 0) -> Problem:
        """Make the problem of a fault in JSON that starts at `offset` of the text."""
        rule = INVALID_HISTORY_JSON if fault.first is None else DUPLICATE_HISTORY_KEY
        first = None
        if fault.first is not None:
            first = (fault.first[0] + offset, fault.first[1] + offset)
        return cls(rule, fault.message, fault.start + offset, fault.end + offset, first=first)

    def diagnostic(self, source: Source) -> Diagnostic:
        """Convert it to a diagnostic at its place in `source`."""
        span = span_between(source, self.start, self.end)
        related: tuple[Related, ...] = ()
        if self.first is not None:
            related = (Related("it is here first", source.path, span_between(source, *self.first)),)
        line = source.line(span.start.line)
        return Diagnostic(
            self.rule.code,
            self.message,
            source.path,
            span,
            self.rule.severity,
            self.hint,
            None if self.replacement is None else Fix(span, self.replacement),
            related,
            line if len(line) <= _MAX_SHOWN else None,
        )


def span_between(source: Source, start: int, end: int) -> Span:
    """Make the span between two offsets of a source."""
    return Span(source.position(start), source.position(end))


def refuse(source: Source, problems: Iterable[Problem]) -> HistoryError:
    """Make the error that says a history cannot be read, with all its problems in order.

    Args:
        source: The text they are in.
        problems: At least one.

    Returns:
        The error, to be raised.
    """
    found = [problem.diagnostic(source) for problem in sorted(problems, key=lambda p: p.start)]
    where = f"history `{source.path}`" if source.path else "the history"
    if len(found) == 1:
        return HistoryError(
            f"{where} is wrong: {found[0].message}", hint=found[0].hint, diagnostics=found
        )
    return HistoryError(f"{where} has {len(found)} problems", diagnostics=found)
