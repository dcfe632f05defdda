"""What differs between a recorded question and the one asked now, as lines a person can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonValue

_MOST_LINES: Final = 60
_LONGEST_LINE: Final = 300
_CONTEXT: Final = 2


def difference(recorded: JsonValue, now: JsonValue) -> str:
    """Show the difference of two questions.

    Args:
        recorded: The one of the recording.
        now: The one asked now.

    Returns:
        A unified diff without its head, of at most some dozens of lines.
    """
    old, new = list(_lines(recorded, "")), list(_lines(now, ""))
    shown = list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
    if len(shown) > _MOST_LINES:
        left = len(shown) - _MOST_LINES
        shown = [*shown[:_MOST_LINES], f"… ({left} lines more)"]
    return "\n".join([line if len(line) <= _LONGEST_LINE else _cut(line) for line in shown])


def _lines(value: JsonValue, indent: str) -> Iterator[str]:
    if isinstance(value, str):
        for line in value.split("\n"):
            yield f"{indent}{line}"
    elif isinstance(value, Mapping):
        for key in value:
            yield from _member(f"{key}:", value[key], indent)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _member("-", inner, indent)
    else:
        yield f"{indent}{'none' if value is None else value}"


def _member(label: str, value: JsonValue, indent: str) -> Iterator[str]:
    """Write a member on one line where it has one, else below its label."""
    inner = list(_lines(value, f"{indent}  "))
    if len(inner) == 1 and not (
        isinstance(value, Mapping | Sequence) and not isinstance(value, str)
    ):
        yield f"{indent}{label} {inner[0].strip()}"
    elif not inner:
        yield f"{indent}{label} nothing"
    else:
        yield f"{indent}{label}"
        yield from inner


def _cut(line: str) -> str:
    return f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE} characters more)"
