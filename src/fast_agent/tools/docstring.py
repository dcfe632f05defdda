"""Docstrings in Google style: what a function does, and what its parameters mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args"})
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Returns?|Yields?|Raises|Examples?|Notes?"
    r"|Attributes|Warnings?|See Also|References|Todo)\s*:\s*",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\*{0,2}(?P<name>[^\W\d]\w*)\s*(\([^)]*\)\s*)?:(?:\s+(?P<text>.*))?")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart.

    Args:
        description: The text before the first section, such as `Args:`.
        parameters: What the `Args:` section says of each parameter.
    """

    description: str
    parameters: Mapping[str, str]


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart.

    Args:
        text: The docstring as written, or None.

    Returns:
        Its parts; empty ones where there is nothing.
    """
    lines = cleandoc(text or "").splitlines()
    headings = [
        (index, found.group(1).lower())
        for index, line in enumerate(lines)
        if (found := _SECTION.fullmatch(line))
    ]
    first = headings[0][0] if headings else len(lines)
    parameters: dict[str, str] = {}
    ends = [*(index for index, _ in headings), len(lines)][1:]
    for (start, title), end in zip(headings, ends, strict=True):
        if title in _PARAMETERS:
            parameters |= _entries(lines[start + 1 : end])
    return Docstring("\n".join(lines[:first]).strip(), MappingProxyType(parameters))


def _entries(lines: list[str]) -> dict[str, str]:
    """Read `name (type): text` entries; what is indented deeper than the first continues one."""
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        entry = _ENTRY.fullmatch(line.strip()) if _indent(line) == depth else None
        if entry is not None:
            current = entries.setdefault(entry["name"], [])
            current.append((entry["text"] or "").strip())
        elif current is not None:
            current.append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in entries.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
