"""TOML, as far as roles of Codex need it: texts, numbers, lists of texts, and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPECIAL = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\\"]')
_SPECIAL_IN_LINES = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\\]|"(?="")|"$')


def write_toml(values: Mapping[str, JsonValue]) -> str:
    """Write a mapping as TOML.

    Args:
        values: The mapping; tables in it come last.

    Returns:
        The text, with a final line end.
    """
    return "\n".join(_table(values, ())) + "\n"


def _table(values: Mapping[str, JsonValue], place: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    if place and not all(isinstance(value, Mapping) for value in values.values()):
        lines += ["", f"[{'.'.join(map(_key, place))}]"]
    for name, value in values.items():
        if not isinstance(value, Mapping):
            lines.append(f"{_key(name)} = {_value(value)}")
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*place, name))
    return lines


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _value(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _lines(value) if "\n" in value else _text(value)
    if value is None or isinstance(value, Mapping):
        raise ValueError("TOML has no null, and tables stand by themselves")
    return f"[{', '.join(map(_value, value))}]"


def _text(text: str) -> str:
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _lines(text: str) -> str:
    return f'"""\n{_SPECIAL_IN_LINES.sub(_escape, text)}"""'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"
