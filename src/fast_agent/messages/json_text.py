"""Strict JSON: duplicate keys and numbers JSON does not have are refused, and all has a place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonValue

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes from the outermost value to one inside it."""

_MAX_DIGITS = 4300
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


@frozen
class JsonFault:
    """A reason why a text is not strict JSON.

    Args:
        message: What is wrong.
        start: Offset of the first character it concerns.
        end: Offset after the last.
        first: For a duplicate key, the offsets of the key it repeats.
    """

    message: str
    start: int
    end: int
    first: tuple[int, int] | None = None


class JsonTextError(Exception):
    """A text is not strict JSON; `faults` holds every reason that could be found."""

    def __init__(self, faults: tuple[JsonFault, ...]) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


class _NotStrictError(ValueError):
    """Seen while parsing: a duplicate key or a number JSON does not have."""


def parse_json(text: str) -> JsonValue:
    """Parse strict JSON.

    Args:
        text: One JSON value with nothing but white space around it.

    Returns:
        The value, of `dict`, `list`, `str`, `int`, `float`, `bool` and None.

    Raises:
        JsonTextError: It is no JSON, an object has a key twice, a number is not finite or has
            thousands of digits, or it is nested some hundred levels deep.
    """
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError((_syntax_fault(text, error),)) from error
    except (ValueError, RecursionError) as error:
        raise JsonTextError(_all_faults(text)) from error


def write_json(value: JsonValue, *, indent: int | None = None) -> str:
    """Write a value as JSON that `parse_json` reads back equal.

    Args:
        value: Any JSON value; a lone surrogate in a string is written as an escape.
        indent: Spaces a level is indented by; None writes it on one line.

    Returns:
        The text, without a final line end.

    Raises:
        ValueError: It holds something JSON cannot, such as a number that is not finite.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=_plain)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a value of type `{type(value).__name__}` has no JSON form")


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _NotStrictError
    return value


def _no_constant(word: str) -> JsonValue:
    raise _NotStrictError(word)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NotStrictError(digits)
    return number


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
)


def _syntax_fault(text: str, error: json.JSONDecodeError) -> JsonFault:
    start = min(error.pos, len(text))
    if text[start : start + 1] == "," and text[start + 1 :].lstrip()[:1] in {"]", "}"}:
        start += 1  # from Python 3.13 on, such a comma itself is the place
    before = text[:start].rstrip()
    if not before and not text[start:].strip():
        return JsonFault("there is nothing where JSON is expected", start, start)
    if before.endswith(",") and (not text[start:].strip() or text[start:].lstrip()[0] in "]}"):
        return JsonFault("not JSON: a comma with nothing after it", len(before) - 1, len(before))
    if start >= len(text.rstrip()):
        return JsonFault("not JSON: it ends before it is complete", len(before), len(before))
    reason = error.msg[:1].lower() + error.msg[1:].rstrip(": ")
    return JsonFault(f"not JSON: {reason}", start, start + 1)


def _all_faults(text: str) -> tuple[JsonFault, ...]:
    try:
        json.loads(text, parse_int=len, parse_float=len, parse_constant=len)
    except json.JSONDecodeError as error:
        return (_syntax_fault(text, error),)
    except RecursionError:
        return (JsonFault("nested too deep to be read", 0, 1),)
    return tuple(sorted(JsonMap.of(text).faults, key=lambda fault: fault.start))


@dataclass(slots=True)
class _Level:
    """An object or array that is open during the walk."""

    path: JsonPath
    keyed: bool
    start: int
    index: int = 0
    key: str | None = None
    key_place: tuple[int, int] = (0, 0)
    seen: dict[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])

    def child(self) -> JsonPath:
        return (*self.path, (self.key or "") if self.keyed else self.index)


@frozen
class JsonMap:
    """Where everything in a JSON text stands, in offsets.

    Args:
        values: Offsets of each value by its path.
        keys: Offsets of each key, quotes included, by the path of its value.
        faults: Duplicate keys and numbers JSON does not have.
    """

    values: dict[JsonPath, tuple[int, int]]
    keys: dict[JsonPath, tuple[int, int]]
    faults: list[JsonFault]

    @classmethod
    def of(cls, text: str) -> JsonMap:
        """Walk a text whose syntax is known to be valid."""
        made = cls({}, {}, [])
        stack: list[_Level] = []
        for token, start, end in _tokens(text):
            made._take(stack, token, start, end)
        return made

    def place(self, path: JsonPath, *, key: bool = False) -> tuple[int, int]:
        """Find a value, or its key; where the path ends early, what holds it.

        Args:
            path: Keys and indexes.
            key: Take the key instead of the value.

        Returns:
            Offsets of start and end.
        """
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, (0, 1))

    def _take(self, stack: list[_Level], token: str, start: int, end: int) -> None:
        level = stack[-1] if stack else None
        if token in {"{", "["}:
            path = level.child() if level else ()
            stack.append(_Level(path, token == "{", start))  # noqa: S105
        elif token in {"}", "]"}:
            closed = stack.pop()
            self.values[closed.path] = (closed.start, end)
        elif level is not None and token == ",":  # noqa: S105
            level.index += 1
            level.key = None
        elif level is not None and level.keyed and level.key is None:
            self._take_key(level, token, (start, end))
        elif token != ":":  # noqa: S105
            self.values[level.child() if level else ()] = (start, end)
            self._check_number(token, start, end)

    def _take_key(self, level: _Level, token: str, place: tuple[int, int]) -> None:
        key = cast("str", json.loads(token))
        first = level.seen.setdefault(key, place)
        if first is not place:
            self.faults.append(JsonFault(f"the key `{key}` is there twice", *place, first))
        level.key, level.key_place = key, place
        self.keys[level.child()] = place

    def _check_number(self, token: str, start: int, end: int) -> None:
        if token[0] not in "-0123456789IN":
            return
        if token.lstrip("-").isdecimal():
            if end - start > _MAX_DIGITS:
                self.faults.append(JsonFault("the number has too many digits", start, end))
        elif not math.isfinite(float(token)):
            fault = f"`{token[:40]}` is not a number JSON can hold"
            self.faults.append(JsonFault(fault, start, end))


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _TOKEN.finditer(text):
        yield found[0], found.start(), found.end()
