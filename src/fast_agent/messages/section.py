"""Sections: what the delimiter lines of a text history split it into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics.history_rules import NEAR_DELIMITER
from fast_agent.messages.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.source import Source

MESSAGE_PART: Final = "application/vnd.fast-agent.message-part+json"
"""Media type of a section with what plain text cannot carry of the message it ends."""

FILE_PART: Final = "application/vnd.fast-agent.history-part+json"
"""Media type of a first section with what belongs to the whole file."""

USER: Final = "---USER"
ASSISTANT: Final = "---ASSISTANT"
RESOURCE: Final = "---RESOURCE"
SYSTEM: Final = "---SYSTEM"
DELIMITERS: Final = (USER, ASSISTANT, RESOURCE, SYSTEM)


@dataclass(frozen=True, slots=True)
class Section:
    """A delimiter line and the text under it, in offsets of the whole text.

    Args:
        delimiter: The line; empty for text that no delimiter precedes.
        start: Where the delimiter line starts.
        body: Where the text under it starts.
        end: Where that text ends, without the line end before the next delimiter.
    """

    delimiter: str
    start: int
    body: int
    end: int

    def text_of(self, source: Source) -> str:
        """Give the text under the delimiter."""
        return source.text[self.body : self.end]


def delimited_places(source: Source) -> list[tuple[int, int]]:
    """Find where each message of a right delimited history opens, in offsets."""
    sections = [item for item in split_sections(source.text) if item.delimiter != SYSTEM]
    opening = [item for item in sections if item.delimiter != RESOURCE]
    if not opening:
        opening = sections[:1]
    elif sections[0].delimiter == RESOURCE and FILE_PART not in sections[0].text_of(source):
        opening.insert(0, sections[0])
    return [(item.start, item.start + max(1, len(item.delimiter))) for item in opening]


def split_sections(text: str) -> Iterator[Section]:
    """Split a text at its delimiter lines; text before the first one is a section without one."""
    delimiter, start, body, at = "", 0, 0, 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text.startswith("---", at) and text[at:end] in DELIMITERS:
            if delimiter or text[:at].strip():
                yield Section(delimiter, start, body, max(body, at - 1))
            delimiter, start, body = text[at:end], at, min(end + 1, len(text))
        at = end + 1
    yield Section(delimiter, start, body, len(text))


def near_delimiters(source: Source) -> Iterator[Problem]:
    """Find lines that almost are delimiters and are read as text."""
    at = 0
    for line in source.text.split("\n"):
        if line.lstrip().startswith("---") and line not in DELIMITERS:
            meant = "---" + line.replace("-", "").strip().upper()
            if meant in DELIMITERS:
                yield Problem(
                    NEAR_DELIMITER,
                    f"`{line}` is read as text, not as `{meant}`",
                    at,
                    at + len(line),
                    f"write exactly `{meant}`",
                    meant,
                )
        at += len(line) + 1


def trimmed(text: str) -> str:
    """Take blank lines off both ends; the first and last line keep their own white space."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last])
