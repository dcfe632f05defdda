"""The errors of functions that cards name: not found, not callable, not Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
from fast_agent.diagnostics.rules import FUNCTION_FILE_SYNTAX
from fast_agent.errors import CardError
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Severity

NOWHERE = Span(Position(0, 0), Position(0, 0))
"""Replaced by the place in the card that names the function, until that is known."""


def function_error(
    code: str,
    message: str,
    *,
    hint: str | None = None,
    path: str = "",
    span: Span | None = None,
    source_line: str | None = None,
    replacement: str | None = None,
) -> CardError:
    """Make the error for one function of a card.

    Args:
        code: The rule.
        message: What is wrong.
        hint: What to do, or None.
        path: The file it is wrong in; empty for the card's own.
        span: The place in that file, or None.
        source_line: The line at that place, or None.
        replacement: What the card should have instead of the function, or None.

    Returns:
        The error, with one diagnostic. Where `path` is empty, the caller knows the place.
    """
    fix = None if replacement is None else Fix(NOWHERE, replacement)
    severity: Severity = "error"
    diagnostic = Diagnostic(code, message, path, span, severity, hint, fix, source_line=source_line)
    return CardError(message, hint=hint, diagnostics=(diagnostic,))


def syntax_error(problem: SyntaxError, path: str) -> CardError:
    """Make the error for a Python file that cannot be parsed.

    Args:
        problem: What the compiler says.
        path: The file, as it is to be shown.

    Returns:
        The error, at the line and column of the Python file.
    """
    span: Span | None = None
    line: str | None = None
    if problem.lineno is not None:
        column = max(1, problem.offset or 1)
        end_line, end = problem.end_lineno, problem.end_offset
        width = end - column if end and end_line == problem.lineno and end > column else 1
        span = Span.at(problem.lineno, column, width)
        line = problem.text.rstrip("\r\n") if problem.text else None
    message = f"`{path}` is not valid Python: {problem.msg}"
    return function_error(FUNCTION_FILE_SYNTAX, message, path=path, span=span, source_line=line)
