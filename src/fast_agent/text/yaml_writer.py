"""Writing YAML that every reader parses alike, whichever YAML version it follows.

A string is written without quotes only where no version would read it as anything else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

from fast_agent.text.json_value import is_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonValue

_LINE = 88
_MAX_PLAIN_KEY = 1000  # readers reject a key after 1,024 characters
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_START = r"(?:\.{0,2}/)?[^\W\d]"
_FLOW = re.compile(rf"{_START}[\w./@+*-]*(?: [\w./@+*-]+)*")
_BLOCK = re.compile(rf"{_START}(?:[\w./@+*,;'\"()!?=&%$<>|^~{{}}\[\]\\`-]|:(?=\S)| (?=[^\s#]))*")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\x00": "\\0"}
_ESCAPE = re.compile(rf'["\\\t\n]|{_UNSAFE.pattern}')


class UnwritableValueError(ValueError):
    """A value YAML text cannot hold: not finite, not a scalar value, or not JSON at all."""


def write_yaml(value: Mapping[str, JsonValue]) -> str:
    """Write a mapping as YAML in block style.

    Args:
        value: The mapping; its order is kept.

    Returns:
        The text with a final line end; `{}` for an empty mapping.

    Raises:
        UnwritableValueError: Something in it cannot be written.
    """
    if not value:
        return "{}\n"
    return "".join([f"{line}\n" for line in _mapping(value, 0)])


def write_scalar(text: str, *, flow: bool = True) -> str:
    """Write a string on one line.

    Args:
        text: Any string.
        flow: Whether it must stand between brackets too.

    Returns:
        The text as it is where that is safe, else in double quotes.

    Raises:
        UnwritableValueError: It holds half of a surrogate pair.
    """
    plain = _FLOW if flow else _BLOCK
    if plain.fullmatch(text) and text.lower() not in _WORDS and not _UNSAFE.search(text):
        return text
    return f'"{_ESCAPE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    known = _ESCAPED.get(character)
    if known is not None:
        return known
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise UnwritableValueError(f"half of a surrogate pair (U+{code:04X})")
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _mapping(value: Mapping[str, JsonValue], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, item in value.items():
        name = write_scalar(key)
        if len(name) <= _MAX_PLAIN_KEY:
            yield from _entry(f"{indent}{name}:", item, depth)
        else:
            yield f"{indent}? {name}"
            yield from _entry(f"{indent}:", item, depth)


def _sequence(value: Sequence[JsonValue], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for item in value:
        if _is_mapping(item) and item:
            first, *more = _mapping(item, depth + 1)
            yield f"{indent}- {first.removeprefix(indent + '  ')}"
            yield from more
        else:
            yield from _entry(f"{indent}-", item, depth)


def _entry(head: str, value: JsonValue, depth: int) -> Iterator[str]:
    """Write what follows a key or a dash: on its line, or on the lines after."""
    short = _inline(value, _LINE - len(head))
    if short is not None:
        yield f"{head} {short}"
    elif isinstance(value, str):
        yield from _literal(head, value, depth)
    elif _is_mapping(value):
        yield head
        yield from _mapping(value, depth + 1)
    elif is_list(value):
        yield head
        yield from _sequence(value, depth + 1)


def _inline(value: JsonValue, room: int) -> str | None:
    """Write a value on one line, or say that it takes more."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str):
        return None if _fits_literal(value) else write_scalar(value, flow=False)
    if not value:
        return "{}" if _is_mapping(value) else "[]"
    return _flow_list(value, room) if is_list(value) else None


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise UnwritableValueError(f"a number that is not finite ({value})")
    return repr(value)


def _flow_list(value: Sequence[JsonValue], room: int) -> str | None:
    parts: list[str] = []
    for item in value:
        if not isinstance(item, str):
            return None
        parts.append(write_scalar(item))
        room -= len(parts[-1]) + 2
        if room < 0 or parts[-1].startswith('"'):
            return None
    return f"[{', '.join(parts)}]"


def _fits_literal(text: str) -> bool:
    """Whether a block scalar can represent a string of several lines exactly."""
    body = text.removesuffix("\n")
    if "\n" not in text or not body or _UNSAFE.search(text):
        return False
    lines = body.split("\n")
    edges = lines[0], lines[-1]
    if any(not edge or edge[0] in " \t" for edge in edges):
        return False
    return all(not line or line.strip(" \t") for line in lines)


def _literal(head: str, text: str, depth: int) -> Iterator[str]:
    yield f"{head} |" if text.endswith("\n") else f"{head} |-"
    indent = "  " * (depth + 1)
    for line in text.removesuffix("\n").split("\n"):
        yield f"{indent}{line}" if line else ""


def _is_mapping(value: JsonValue) -> TypeGuard[Mapping[str, JsonValue]]:
    return isinstance(value, Mapping)
