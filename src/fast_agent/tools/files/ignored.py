"""Glob patterns and ignore files, as Git and ripgrep read them.

Only the standard library is imported: the search program has nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

IGNORE_FILES = (".gitignore", ".ignore")
"""The files of a directory that list what is ignored in it; the later one decides."""


class IgnoreRules:
    """The patterns of one ignore file.

    Args:
        text: The content of the file.
    """

    __slots__ = ("_any_name", "_any_path", "_rules")

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]
        # One expression for all patterns: nearly every file matches none of them.
        self._any_name = _any(source for source, on_name, _, _ in self._rules if on_name)
        self._any_path = _any(source for source, on_name, _, _ in self._rules if not on_name)

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """Return whether a file is ignored; None if no pattern matches it.

        Args:
            path: Its path relative to the directory of the ignore file.
            name: Its name.
            is_directory: Whether it is a directory.
        """
        by_name = self._any_name is not None and self._any_name.fullmatch(name)
        by_path = self._any_path is not None and self._any_path.fullmatch(path)
        if not by_name and not by_path:
            return None
        for source, on_name, is_negated, only_directories in reversed(self._rules):
            if only_directories and not is_directory:
                continue
            if re.fullmatch(source, name if on_name else path, re.DOTALL):
                return not is_negated
        return None


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob for paths with `/`: `*`, `**`, `?`, `[…]`, `{a,b}`.

    Args:
        glob: The pattern. Without a `/` in it, it is about names at any depth.

    Raises:
        re.error: It cannot be compiled.
    """
    text = glob.removeprefix("./")
    inner = text.strip("/")
    source = _translate(inner, braces=True)
    return re.compile(source if "/" in text.rstrip("/") else f"(?:.*/)?{source}", re.DOTALL)


def _any(sources: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = [f"(?:{one})" for one in sources]
    return re.compile("|".join(alternatives), re.DOTALL) if alternatives else None


def _rule(line: str) -> tuple[str, bool, bool, bool] | None:
    """Read a line: the expression, whether it is about names, negated, of directories only."""
    text = line.rstrip() if not line.endswith("\\ ") else line
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    on_name = "/" not in text
    source = _translate(text.lstrip("/"))
    try:
        re.compile(source)
    except re.error:
        return None
    return source, on_name, is_negated, only_directories


def _translate(glob: str, *, braces: bool = False) -> str:
    source, at, depth = "", 0, 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            source, at = source + "(?:.*/)?", at + 3
            continue
        if glob.startswith("/**", at) and at + 3 == len(glob):
            return source + "/.+"
        one = glob[at]
        if one == "*":
            stars = len(glob[at:]) - len(glob[at:].lstrip("*"))
            source, at = source + (".*" if glob == "**" else "[^/]*"), at + stars
            continue
        end = glob.find("]", at + 2) if one == "[" else -1
        if end > 0:
            source, at = source + _set_of(glob[at + 1 : end]), end + 1
            continue
        if one == "\\" and at + 1 < len(glob):
            source, at = source + re.escape(glob[at + 1]), at + 2
            continue
        if braces and one in "{,}" and (one == "{" or depth):
            depth += {"{": 1, ",": 0, "}": -1}[one]
            source += {"{": "(?:", ",": "|", "}": ")"}[one]
        else:
            source += "[^/]" if one == "?" else re.escape(one)
        at += 1
    return source


def _set_of(inner: str) -> str:
    negated = inner[:1] in {"!", "^"}
    body = (inner[1:] if negated else inner).replace("\\", "\\\\").replace("[", "\\[")
    return f"(?!/)[{'^' if negated else ''}{body}]"
