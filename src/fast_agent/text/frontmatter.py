"""Frontmatter of Markdown, the YAML between two `---` lines at its head, and its fenced code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from fast_agent.errors import FastAgentError
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.source import Source


@frozen
class Frontmatter:
    """A Markdown file in two parts.

    Args:
        text: The YAML between the fences.
        first_line: Line number of its first line.
        body: What follows the closing fence.
        body_line: Line number of the body's first line.
    """

    text: str
    first_line: int
    body: str
    body_line: int


class FrontmatterError(FastAgentError):
    """Frontmatter opens but cannot be read.

    Args:
        message: What is wrong.
        reason: `unclosed`, `toml`, or `fence` for a fence that is not exactly `---`.
        span: Where.
        hint: What to do.
        replacement: Text that would fix the span, or None.
    """

    def __init__(
        self,
        message: str,
        reason: Literal["unclosed", "toml", "fence"],
        span: Span,
        *,
        hint: str,
        replacement: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.span = span
        self.replacement = replacement


def split_frontmatter(source: Source) -> Frontmatter | None:
    """Split a Markdown file into its frontmatter and its body.

    A line that is exactly `---` opens, as the first line, and the next such line closes.

    Args:
        source: The file.

    Returns:
        The two parts; None if the file does not start with frontmatter.

    Raises:
        FrontmatterError: The frontmatter is not closed, is TOML (`+++`), or its fence has
            blanks behind it.
    """
    text = source.text
    if not text.startswith("---\n"):
        _check_first_line(source)
        return None
    close = text.find("\n---\n", 3)
    if close >= 0:
        body_start = close + 5
    elif text.endswith("\n---"):
        close = len(text) - 4
        body_start = len(text)
    else:
        raise _unclosed(source)
    yaml = text[4 : close + 1]
    return Frontmatter(yaml, 2, text[body_start:], yaml.count("\n") + 3)


def _check_first_line(source: Source) -> None:
    first = source.line(1)
    if first.rstrip() == "+++":
        raise FrontmatterError(
            "frontmatter between `+++` lines is TOML; cards are YAML",
            "toml",
            Span.at(1, 1, 3),
            hint="write `---` above and below, and `key: value` lines between",
        )
    if first == "---":
        raise _unclosed(source)
    if first.rstrip() == "---":
        raise _loose_fence(1, first)


def _unclosed(source: Source) -> FrontmatterError:
    for number, line in enumerate(source.text.split("\n")[1:], 2):
        if line.rstrip() == "---":
            return _loose_fence(number, line)
    return FrontmatterError(
        "frontmatter is opened here and never closed",
        "unclosed",
        Span.at(1, 1, 3),
        hint="put a line that is exactly `---` after the last field",
    )


def _loose_fence(number: int, line: str) -> FrontmatterError:
    return FrontmatterError(
        "the frontmatter fence has spaces after it; it must be exactly `---`",
        "fence",
        Span.at(number, 1, len(line)),
        hint="remove the blanks",
        replacement="---",
    )


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
