"""Diagnostics of a source, each with the line it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Fix, Related, Severity
    from fast_agent.text.source import Source
    from fast_agent.text.span import Span


def diagnostic(
    source: Source,
    code: str,
    message: str,
    span: Span | None,
    *,
    hint: str | None = None,
    fix: Fix | None = None,
    related: tuple[Related, ...] = (),
    severity: Severity = "error",
) -> Diagnostic:
    """Make a diagnostic of a file, with its source line."""
    return Diagnostic(
        code=code,
        message=message,
        path=source.path,
        span=span,
        severity=severity,
        hint=hint,
        fix=fix,
        related=related,
        source_line=None if span is None else source.line(span.start.line),
    )
