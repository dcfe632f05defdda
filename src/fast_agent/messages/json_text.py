"""Strict JSON: duplicate keys and numbers JSON does not have are refused, and all has a place.

A `Node` walks a value whose shape is expected, and names the place of what is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, RelatedPlace
from fast_agent.diagnostics.rules import DUPLICATE_HISTORY_KEY, INVALID_HISTORY_JSON
from fast_agent.errors import HistoryError
from fast_agent.messages.message import NOTHING
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Source

JsonPath: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes from the outermost value to one inside it."""

_MAX_DIGITS = 4300
_PIECE = r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+'
_SURROGATE = "[\ud800-\udfff]"


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
        JsonTextError: It is not JSON, an object has a key twice, a number is not finite or has
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
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, default=_json_value
        )
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return re.sub(_SURROGATE, lambda found: f"\\u{ord(found[0]):04x}", text)


def _json_value(value: object) -> object:
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
        return (JsonFault("nested too deeply", 0, 1),)
    return tuple(sorted(JsonMap.of(text).faults, key=lambda fault: fault.start))


@dataclass(slots=True)
class _Level:
    """An object or array that is open during the walk."""

    path: JsonPath
    keyed: bool
    start: int
    index: int = 0
    key: str | None = None
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
        for token, start, end in _pieces(text):
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
            self.faults.append(JsonFault(f"the key `{key}` is defined twice", *place, first))
        level.key = key
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


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    for found in re.finditer(_PIECE, text, re.DOTALL):
        yield found[0], found.start(), found.end()


_MAX_SHOWN = 20_000


@frozen
class Problem:
    """A problem in a text.

    Args:
        rule: The rule it breaks.
        message: What is wrong.
        start: Offset in the text of the first character it concerns.
        end: Offset after the last.
        hint: What to do, or None.
        replacement: Text that would put it right in place of that stretch, or None.
        first: Offsets of the other place of a duplicate, or None.
    """

    rule: Rule
    message: str
    start: int
    end: int
    hint: str | None = None
    replacement: str | None = None
    first: tuple[int, int] | None = None

    @classmethod
    def of_fault(cls, fault: JsonFault, offset: int = 0) -> Problem:
        """Make the problem of a fault in JSON that starts at `offset` of the text."""
        rule = INVALID_HISTORY_JSON if fault.first is None else DUPLICATE_HISTORY_KEY
        first = None
        if fault.first is not None:
            first = (fault.first[0] + offset, fault.first[1] + offset)
        return cls(rule, fault.message, fault.start + offset, fault.end + offset, first=first)

    def diagnostic(self, source: Source) -> Diagnostic:
        """Convert it to a diagnostic at its place in `source`."""
        span = span_between(source, self.start, self.end)
        related: tuple[RelatedPlace, ...] = ()
        if self.first is not None:
            related = (
                RelatedPlace(
                    "it is first given here", source.path, span_between(source, *self.first)
                ),
            )
        line = source.line(span.start.line)
        return Diagnostic(
            self.rule.code,
            self.message,
            source.path,
            span,
            self.rule.severity,
            self.hint,
            None if self.replacement is None else Fix(span, self.replacement),
            related,
            line if len(line) <= _MAX_SHOWN else None,
        )


def span_between(source: Source, start: int, end: int) -> Span:
    """Make the span between two offsets of a source."""
    return Span(source.position(start), source.position(end))


def refuse(source: Source, problems: Iterable[Problem]) -> HistoryError:
    """Make the error that says a history cannot be read, with all its problems in order.

    Args:
        source: The text they are in.
        problems: At least one.

    Returns:
        The error, to be raised.
    """
    found = [problem.diagnostic(source) for problem in sorted(problems, key=lambda p: p.start)]
    where = f"history `{source.path}`" if source.path else "the history"
    if len(found) == 1:
        return HistoryError(
            f"{where} is wrong: {found[0].message}", hint=found[0].hint, diagnostics=found
        )
    return HistoryError(f"{where} has {len(found)} problems", diagnostics=found)


@frozen
class ShapeProblem:
    """A value that does not have the shape it must have.

    Args:
        path: Where it is in the JSON document.
        message: What is wrong; names the value by its path.
        hint: What to write, or None.
        key: The key is meant, not the value.
        replacement: A value that would put it right, or None.
    """

    path: JsonPath
    message: str
    hint: str | None = None
    key: bool = False
    replacement: JsonValue = None


@frozen
class Node:
    """A value in a JSON document that is being read.

    Args:
        value: The value.
        path: Where it is.
        problems: Where problems go.
    """

    value: JsonValue
    path: JsonPath
    problems: list[ShapeProblem]

    @property
    def name(self) -> str:
        """The path as people write it: `messages[7].role`."""
        return path_text(self.path)

    def report(
        self,
        message: str,
        hint: str | None = None,
        *,
        key: bool = False,
        replacement: JsonValue = None,
    ) -> None:
        """Note a problem of this value; `message` follows its name."""
        text = f"`{self.name}` {message}" if self.path else f"the history {message}"
        self.problems.append(ShapeProblem(self.path, text, hint, key, replacement))

    def must_be(self, what: str, *, hint: str | None = None) -> None:
        """Note that this value is not `what`."""
        self.report(f"must be {what}, not {kind_of(self.value)}", hint)

    def child(self, key: str | int, value: JsonValue) -> Node:
        """Make the node of a value inside this one."""
        return Node(value, (*self.path, key), self.problems)

    def fields(self) -> JsonObject | None:
        """Return the value as an object; note a problem and return None if it is not one."""
        if isinstance(self.value, Mapping):
            return self.value
        self.must_be("an object")
        return None

    def items(self) -> Iterator[Node]:
        """Yield the nodes of a list's values; none for null; note any other value."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield self.child(index, value)
        elif self.value is not None:
            self.must_be("a list")

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Yield the nodes of an object's values by key; none for null; note any other value."""
        if self.value is None:
            return
        for key, value in (self.fields() or NOTHING).items():
            yield key, self.child(key, value)

    def string(self, key: str, *, hint: str | None = None) -> str:
        """Return the required string field `key`."""
        found = self.optional_string(key)
        if found is None and self.field(key) is None:
            self.report(f"has no `{key}`", hint=hint)
        return found or ""

    def optional_string(self, key: str) -> str | None:
        """Return the string field `key`; None if it is missing or null."""
        value = self.field(key)
        if value is None or isinstance(value, str):
            return value
        self.child(key, value).must_be("a string")
        return None

    def flag(self, key: str) -> bool:
        """Return the true-or-false field `key`; False if it is missing or null."""
        value = self.field(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.child(key, value).must_be("true or false")
        return False

    def field(self, key: str) -> JsonValue:
        """Return the raw value of `key`; None if it is missing."""
        return cast("JsonObject", self.value).get(key)

    def rest(self, known: frozenset[str]) -> JsonObject:
        """Return the fields that are not `known`."""
        fields = cast("JsonObject", self.value)
        if fields.keys() <= known:
            return NOTHING
        return {key: value for key, value in fields.items() if key not in known}


def kind_of(value: JsonValue) -> str:
    """Return the kind of a JSON value in words, including short values themselves."""
    if value is None:
        return "null"
    if isinstance(value, str) and 0 < len(value) <= 30:
        return f"`{value}`"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (int, float)):
        return "a number"
    return "an object" if isinstance(value, Mapping) else "a list"


def path_text(path: JsonPath) -> str:
    """Write a path the way people do."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
