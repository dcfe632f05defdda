"""Problems as a user reads them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.visible import cells, glyphs, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic
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
    """Count problems by severity, and those `--fix` would solve, on one line."""
    counts = [
        _count(sum(found.severity == severity for found in diagnostics), noun)
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "note"))
    ]
    line = ", ".join(filter(None, counts)) or "no problems"
    fixable = sum(found.fix is not None for found in diagnostics)
    return f"{line} ({fixable} fixable with `--fix`)" if fixable else line


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
    first, *more = diagnostic.message.split("\n")
    lines = [f"{_paint(label, _COLORS[severity], on=color)}: {visible(first)}"]
    # Indented, so that no text of a file passes for a separate problem.
    lines += [f"  {visible(line)}".rstrip() for line in more]
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


_ELLIPSIS = "…"


def excerpt(line: str, span: Span, *, width: int = 100) -> tuple[str, str]:
    """Fit one line of source and the caret line that goes under it.

    Args:
        line: The line at `span.start`; what is invisible in it is made visible.
        span: The stretch to underline; of a stretch over several lines, the first is shown.
        width: Most terminal columns of the line; a longer one is cut around the span.

    Returns:
        The line to print and the caret line, aligned in terminal columns.
    """
    laid = glyphs(line)
    first = min(span.start.column - 1, len(laid))
    last = span.end.column - 1 if span.end.line == span.start.line else len(laid)
    last = max(first, min(last, len(laid)))
    begin, end = _window([size for _, size in laid], first, last, width)
    lead = _ELLIPSIS if begin > 0 else ""
    tail = _ELLIPSIS if end < len(laid) else ""
    text = "".join([shown for shown, _ in laid[begin:end]])
    before = sum(size for _, size in laid[begin:first])
    under = sum(size for _, size in laid[first : min(last, end)])
    return f"{lead}{text}{tail}".rstrip(), " " * (len(lead) + before) + "^" * max(1, under)


def _window(sizes: list[int], first: int, last: int, width: int) -> tuple[int, int]:
    """Choose the characters to show: the start of the span, and what fits around it."""
    if sum(sizes) <= width:
        return 0, len(sizes)
    room = width - 2
    begin = end = first
    used = 0
    while end < last and used + sizes[end] <= room:
        used += sizes[end]
        end += 1
    half = used + (room - used) // 2
    while begin > 0 and used + sizes[begin - 1] <= half:
        begin -= 1
        used += sizes[begin]
    while end < len(sizes) and used + sizes[end] <= room:
        used += sizes[end]
        end += 1
    while begin > 0 and used + sizes[begin - 1] <= room:
        begin -= 1
        used += sizes[begin]
    return begin, end
