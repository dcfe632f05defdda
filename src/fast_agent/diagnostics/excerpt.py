"""The source line of a problem with a caret under it, fitted to a width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.visible import glyphs

if TYPE_CHECKING:
    from fast_agent.text.span import Span

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
