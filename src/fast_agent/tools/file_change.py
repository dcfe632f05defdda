"""A change of a file, and the difference it makes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from pathlib import Path

_MAX_COMPARED: Final = 4_000_000
_CONTEXT: Final = 3


@frozen
class FileChange:
    """What a call would change, for approval.

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
    if len(first) * len(second) > _MAX_COMPARED:
        return f"--- {name}\n+++ {name}\n@@ {len(first):,} lines became {len(second):,} @@\n"
    lines = difflib.unified_diff(first, second, name, name, n=_CONTEXT, lineterm="")
    text = "\n".join(_moved(line, start) for line in lines)
    if not text and old != new:
        return f"--- {name}\n+++ {name}\n@@ only line ends changed @@\n"
    return f"{text}\n" if text else ""


def _moved(line: str, by: int) -> str:
    """Count the lines of a diff's head from the start of the file."""
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
