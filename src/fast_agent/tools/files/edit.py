"""Edits: exact replacement in a string."""

from __future__ import annotations

from fast_agent.errors import ToolError


def replaced(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """Replace a part of a string that is found exactly as written.

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


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _why_missing(text: str, old: str) -> str:
    """Return what is nearly the same, so that the next try can succeed."""
    squeezed = " ".join(old.split())
    if squeezed and squeezed in " ".join(text.split()):
        return "it is there with other spaces or line ends: read the file, and copy the part"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    for number, line in enumerate(text.splitlines(), 1):
        if first and first in line:
            return f"its first line is at line {number}, but what follows differs: read it again"
    return "read the file, and copy the part as it is"
