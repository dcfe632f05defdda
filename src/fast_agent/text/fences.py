"""Fenced code in Markdown: which lines are outside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>.*)")


def unfenced_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside fenced code blocks.

    Args:
        text: Markdown with line feeds as line ends.

    Yields:
        Line numbers, from 1, and lines without their line end. Fence lines are left out.
    """
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        match = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
        if match is None:
            if not fence:
                yield number, line
            continue
        mark, rest = match["fence"], match["rest"]
        if fence:
            if mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
                fence = ""
        elif mark[0] == "`" and "`" in rest:
            yield number, line
        else:
            fence = mark
