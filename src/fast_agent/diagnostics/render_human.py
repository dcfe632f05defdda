"""Problems as a person reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.excerpt import excerpt
from fast_agent.text.visible import cells, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.card_fact import CardFact
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.span import Span

_COLORS = {"error": "31", "warning": "33", "info": "36"}


def render_human(
    diagnostics: Iterable[Diagnostic],
    *,
    color: bool = False,
    width: int = 100,
    summary: bool = True,
) -> str:
    """Render problems for a terminal; the text says everything without colour.

    Args:
        diagnostics: The problems, in the order to print them.
        color: Whether to add ANSI colours.
        width: Most terminal columns of a source line.
        summary: Whether to end with the count of problems.

    Returns:
        The text, with a final line end; empty when there is nothing to say.
    """
    found = list(diagnostics)
    if not found:
        return ""
    blocks = ["\n".join(_block(diagnostic, color=color, width=width)) for diagnostic in found]
    if summary:
        blocks.append(summarize(found))
    return "\n\n".join(blocks) + "\n"


def summarize(diagnostics: Sequence[Diagnostic]) -> str:
    """Count problems by severity, and those `--fix` would mend, on one line."""
    counts = [
        _count(sum(found.severity == severity for found in diagnostics), noun)
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "note"))
    ]
    line = ", ".join(filter(None, counts)) or "no problems"
    fixable = sum(found.fix is not None for found in diagnostics)
    return f"{line} ({fixable} can be mended with `--fix`)" if fixable else line


def render_cards(facts: Iterable[CardFact]) -> str:
    """Render the cards of a load-set as an aligned table without a heading.

    Args:
        facts: The cards, in the order to print them.

    Returns:
        One line for each card: name, type, path, and `default` or `tool only`.
    """
    rows = [
        (
            visible(fact.name),
            fact.type,
            visible(fact.path),
            _role(default=fact.default, tool_only=fact.tool_only),
        )
        for fact in facts
    ]
    name = max((cells(row[0]) for row in rows), default=0)
    kind = max((len(row[1]) for row in rows), default=0)
    path = max((cells(row[2]) for row in rows), default=0)
    lines = [
        f"{_pad(row[0], name)}  {_pad(row[1], kind)}  {_pad(row[2], path)}  {row[3]}".rstrip()
        for row in rows
    ]
    return "".join([f"{line}\n" for line in lines])


def _block(diagnostic: Diagnostic, *, color: bool, width: int) -> list[str]:
    severity = diagnostic.severity
    label = f"{severity}[{diagnostic.code}]"
    lines = [f"{_paint(label, _COLORS[severity], on=color)}: {visible(diagnostic.message)}"]
    if diagnostic.path:
        lines.append(f"  --> {place(diagnostic.path, diagnostic.span)}")
    if diagnostic.span is not None and diagnostic.source_line is not None:
        text, caret = excerpt(diagnostic.source_line, diagnostic.span, width=width)
        number = str(diagnostic.span.start.line)
        lines.append(f"{number} | {text}".rstrip())
        indent, marks = caret[: -len(caret.lstrip())], caret.lstrip()
        lines.append(f"{' ' * len(number)} | {indent}{_paint(marks, _COLORS[severity], on=color)}")
    for related in diagnostic.related:
        lines.append(f"{_paint('note', '36', on=color)}: {visible(related.message)}")
        if related.path:
            lines.append(f"  --> {place(related.path, related.span)}")
    if diagnostic.hint:
        first, *more = diagnostic.hint.splitlines() or [""]
        lines.append(f"{_paint('hint', '32', on=color)}: {visible(first)}")
        lines.extend(f"      {visible(line)}".rstrip() for line in more)
    return lines


def place(path: str, span: Span | None) -> str:
    """Name a place as `path:line:column`, or the file alone."""
    if span is None:
        return visible(path)
    return f"{visible(path)}:{span.start.line}:{span.start.column}"


def _paint(text: str, code: str, *, on: bool) -> str:
    return f"\x1b[1;{code}m{text}\x1b[0m" if on else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def _role(*, default: bool, tool_only: bool) -> str:
    if default:
        return "default"
    return "tool only" if tool_only else ""
