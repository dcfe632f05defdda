"""Sections of Markdown by heading, and reading a long text piece by piece."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fast_agent.resources.problem import AmbiguousName, NotFound
from fast_agent.text.frontmatter import unfenced_lines
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HASHES = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t\r]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t\r]*")
_NO_PARAGRAPH = re.compile(r"\s*$| {0,3}(?:#{1,6}(?:\s|$)|>|[-*+] |\d{1,9}[.)] |\|)|    |\t")
# An underscore inside a word is part of it: `request_params`.
_MARKS = re.compile(r"[*`]|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)|\]\([^)]*\)|[\[\]]")
_ALL_MARKS = re.compile(r"[*_`]|\]\([^)]*\)|[\[\]]")
_SEPARATOR = " > "


@frozen
class Section:
    """A heading with what is below it, up to the next heading of its level or above.

    Args:
        title: The heading's text, without marks of emphasis; "" for what is above all headings.
        level: 1 to 6; 0 for what is above all headings.
        path: The titles of the headings it is nested in, and its own.
        start: Offset of the heading's line.
        own_end: Offset of the next heading of any level.
        end: Offset of its end, sections inside it included.
    """

    title: str
    level: int
    path: tuple[str, ...]
    start: int
    own_end: int
    end: int

    @property
    def name(self) -> str:
        """The path as people write it: `Setup > Linux`."""
        return _SEPARATOR.join(self.path)


@frozen
class Excerpt:
    """A piece of a text.

    Args:
        text: The piece.
        start: Offset of its first character, within the section where one was asked for.
        total: Characters of the whole, or of the section.
    """

    text: str
    start: int
    total: int

    @property
    def end(self) -> int:
        """Offset behind its last character."""
        return self.start + len(self.text)

    @property
    def note(self) -> str | None:
        """How to get the rest; None where nothing is missing behind the piece."""
        if self.end >= self.total:
            return None
        return (
            f"characters {self.start} to {self.end} of {self.total};"
            f" continue with `offset` {self.end}"
        )


def sections(text: str) -> tuple[Section, ...]:
    """Find the sections of Markdown, in order.

    Headings inside fenced code and frontmatter do not count. Text above the first heading is a
    section without a title.

    Args:
        text: Markdown, with any line ends.
    """
    found = list(_headings(text))
    ends = [start for start, _, _ in found[1:]] + [len(text)]
    made: list[Section] = []
    if found and text[: found[0][0]].strip():
        made.append(Section("", 0, (), 0, found[0][0], found[0][0]))
    elif not found and text.strip():
        return (Section("", 0, (), 0, len(text), len(text)),)
    above: list[tuple[int, str]] = []
    for index, (start, level, title) in enumerate(found):
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, title))
        end = next((later for later, other, _ in found[index + 1 :] if other <= level), len(text))
        path = tuple(one for _, one in above)
        made.append(Section(title, level, path, start, ends[index], end))
    return tuple(made)


def section(uri: str, text: str, name: str) -> Section:
    """Find a section by its name.

    Args:
        uri: The document's, for messages.
        text: Its text.
        name: A heading in any letter case, or the end of a path of headings: `Setup > Linux`.

    Raises:
        NotFound: There is none; the hint names the closest, or what there is.
        Ambiguous: There are several; the hint names their paths.
    """
    wanted = tuple(_folded(part) for part in name.lstrip("# ").split(">"))
    named = [one for one in sections(text) if one.level]
    found = [one for one in named if _ends_with(one.path, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        names = [one.name for one in found]
        if len(set(names)) == 1:
            return found[0]
        exact = [one for one in found if len(one.path) == len(wanted)]
        if len(exact) == 1:
            return exact[0]
        raise AmbiguousName(f"{uri} § {name}", names, what="sections")
    raise NotFound(name, _closest(name, named), what=f"section of `{uri}` called")


def excerpt(
    uri: str,
    text: str,
    *,
    section_name: str | None = None,
    offset: int = 0,
    max_chars: int | None = None,
) -> Excerpt:
    """Return a piece of a text, ending at a line's end if there is one in its second half.

    Args:
        uri: The document's, for messages.
        text: Its text.
        section_name: A section to keep to, or None.
        offset: Characters to skip, within the section if one is named.
        max_chars: Most characters, at least 1; None for all.

    Raises:
        NotFound: There is no such section.
        Ambiguous: There are several.
    """
    if section_name is not None:
        found = section(uri, text, section_name)
        text = text[found.start : found.end]
    total = len(text)
    start = min(max(offset, 0), total)
    end = total if max_chars is None else min(start + max(max_chars, 1), total)
    if end < total:
        line_end = text.rfind("\n", start + (end - start) // 2, end)
        if line_end >= 0:
            end = line_end + 1
    return Excerpt(text[start:end], start, total)


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Each heading's offset, level and title."""
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    first = _frontmatter_lines(lines)
    before = -1
    for number, line in unfenced_lines(text):
        if number <= first:
            continue
        if "#" in line and (match := _HASHES.fullmatch(line)):
            yield offsets[number - 1], len(match[1]), _title(match[2] or "")
        elif (
            before == number - 1
            and (match := _UNDERLINE.fullmatch(line))
            and not _NO_PARAGRAPH.match(lines[number - 2])
        ):
            yield offsets[number - 2], 1 if match[1][0] == "=" else 2, _title(lines[number - 2])
        before = number if line.strip() and not _UNDERLINE.fullmatch(line) else -1


def _frontmatter_lines(lines: Sequence[str]) -> int:
    """How many lines at the head are frontmatter."""
    if lines[0].lstrip("\ufeff").rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == "---":
            return number
    return 0


def _title(text: str) -> str:
    return _MARKS.sub("", text).strip()


def _folded(text: str) -> str:
    return " ".join(_ALL_MARKS.sub("", text).split()).casefold()


def _ends_with(path: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return tuple(map(_folded, path[-len(wanted) :])) == wanted


def _closest(name: str, named: Sequence[Section]) -> list[str]:
    from fast_agent.text.wording import closest

    close = closest(name, [one.title for one in named])
    return [one.name for one in named if close is None or one.title == close]
