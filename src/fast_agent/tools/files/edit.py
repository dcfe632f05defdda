"""Edits: exact replacement in a text, and the difference between two texts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

_MOST_COMPARED: Final = 4_000_000
_CONTEXT: Final = 3


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a call would change, for whoever allows it.

    Args:
        path: The file, absolute.
        name: The file as it was named.
        old: Its text; None where there is no such file.
        new: Its text afterwards.
    """

    path: Path
    name: str
    old: str | None
    new: str

    def diff(self) -> str:
        """Return the change as a unified diff."""
        return unified_diff(self.old or "", self.new, self.name)


def replaced(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """Replace a part of a text that is found as it is written.

    Args:
        text: The text.
        old: What is replaced. Its line ends may be LF where the text has CR LF.
        new: What takes its place.
        everywhere: Whether it may be there more than once.

    Returns:
        The new text, and how often it was replaced.

    Raises:
        ToolError: It is not there, or more than once.
    """
    if not old:
        raise ToolError("`old_string` is empty", hint="`write_file` writes a whole file")
    if old == new:
        raise ToolError("`old_string` and `new_string` are the same")
    if old not in text and "\r\n" in text:
        old, new = _with_crlf(old), _with_crlf(new)
    count = text.count(old)
    if not count:
        raise ToolError("`old_string` is not in the file", hint=_why_missing(text, old))
    if count > 1 and not everywhere:
        raise ToolError(
            f"`old_string` is in the file {count} times",
            hint="give more of the lines around it, or set `replace_all`",
        )
    return text.replace(old, new), count


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the difference of two texts as a unified diff; empty where there is none.

    Args:
        old: The text before.
        new: The text after.
        name: The file, as its head names it.
    """
    before, after = old.splitlines(), new.splitlines()
    # Equal ends are cut off first: comparing is quadratic, and most changes are small.
    head = _equal_from_start(before, after)
    tail = _equal_from_start(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _CONTEXT)
    first = before[start : len(before) - max(0, tail - _CONTEXT)]
    second = after[start : len(after) - max(0, tail - _CONTEXT)]
    if len(first) * len(second) > _MOST_COMPARED:
        return f"--- {name}\n+++ {name}\n@@ {len(first):,} lines became {len(second):,} @@\n"
    lines = difflib.unified_diff(first, second, name, name, n=_CONTEXT, lineterm="")
    text = "\n".join(_moved(line, start) for line in lines)
    if not text and old != new:
        return f"--- {name}\n+++ {name}\n@@ only line ends changed @@\n"
    return f"{text}\n" if text else ""


def _moved(line: str, by: int) -> str:
    """Count the lines of a diff's head from the beginning of the file."""
    if not line.startswith("@@ ") or not by:
        return line
    _, before, after, _ = line.split(" ", 3)
    return f"@@ {_shifted(before, by)} {_shifted(after, by)} @@"


def _shifted(span: str, by: int) -> str:
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"


def _equal_from_start(first: list[str], second: list[str]) -> int:
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return count
    return min(len(first), len(second))


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _why_missing(text: str, old: str) -> str:
    """Say what is nearly the same, so that the next try can be right."""
    squeezed = " ".join(old.split())
    if squeezed and squeezed in " ".join(text.split()):
        return "it is there with other spaces or line ends: read the file, and copy the part"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    for number, line in enumerate(text.splitlines(), 1):
        if first and first in line:
            return f"its first line is at line {number}, but what follows differs: read it again"
    return "read the file, and copy the part as it is"
