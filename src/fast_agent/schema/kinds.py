"""Kinds of values, as plain data: what a field of a card or of the configuration may hold.

The readers, JSON Schema and the dump all read these; none of them has a separate list.
A kind is chosen by the JSON type of a value, so the branches of an `AnyOf` never overlap.

The JSON Schema of each is made at the end.
"""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 (`dataclass` resolves it by its name)
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.text.json_value import JsonObject, JsonValue

EffectKind: TypeAlias = Literal["run", "connect", "send", "read", "write", "use", "ease"]
"""What a field can make a found file do beyond talking (`fast_agent.trust.effect`)."""
Effects: TypeAlias = tuple[EffectKind, ...]
"""The effects a field can have alone; a `${NAME}` in any field is also a `send`."""


@frozen
class Text:
    """A string.

    Args:
        blank: Whether an empty or whitespace-only string is allowed.
    """

    blank: bool = False


@frozen
class SecretText(Text):
    """A text that may be a secret: an unset variable in it leaves it unset."""


@frozen
class PathText(Text):
    """A path, relative to the file it is written in; a URI stays as it is.

    Args:
        program: A bare name stays too, to be looked up on the `PATH`.
    """

    program: bool = False


@frozen
class FunctionName:
    """A string `file.py:name`; from Python also a callable."""


@frozen
class Flag:
    """True or false, never a string or a number that looks like one."""


@frozen
class Integer:
    """A whole number, never a boolean.

    Args:
        minimum: Smallest value allowed, or None.
        maximum: Largest value allowed, or None.
        also: Values allowed although they are out of bounds, such as -1 for "no limit".
    """

    minimum: int | None = None
    maximum: int | None = None
    also: tuple[int, ...] = ()

    def allows(self, number: float) -> bool:
        """Return whether a number is within the bounds, or one of those allowed in addition."""
        return number in self.also or (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
        )


@frozen
class Number:
    """A whole or decimal number, never a boolean.

    Args:
        minimum: Smallest value allowed, or None.
        maximum: Largest value allowed, or None.
        above: Bound the value must be larger than, or None.
        below: Bound the value must be smaller than, or None.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None

    def allows(self, number: float) -> bool:
        """Return whether a number is within the bounds."""
        return (
            (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


@frozen
class OneOf:
    """One of a few words, spelled exactly so."""

    choices: tuple[str, ...]


@frozen
class ListOf:
    """A list.

    Args:
        item: Kind of every item.
        single: Whether one item may stand without the list around it.
    """

    item: Kind
    single: bool = False


@frozen
class MapOf:
    """A mapping with free keys, or with keys from a few words.

    Args:
        value: Kind of every value.
        keys: The allowed keys, or None for any non-blank text.
    """

    value: Kind
    keys: tuple[str, ...] | None = None


@frozen
class Entry:
    """One field of a `Record`.

    Args:
        name: Its name, as it is dumped.
        kind: What it may hold.
        doc: One line about it.
        effects: What it can make a found file do; `()` means none. There is no default, so that a
            field that declares nothing does not get past the build.
        required: Whether it must be given.
        spelling: Another name it may have (`maxTokens` for `max_tokens`), or None.
    """

    name: str
    kind: Kind
    doc: str
    _: KW_ONLY
    effects: Effects
    required: bool = False
    spelling: str | None = None


@frozen
class Record:
    """A mapping with fixed fields; an unknown key is an error.

    Args:
        entries: Its fields, in dump order.
        build: Makes the value from keyword arguments named as the fields.
        others: Hints on fields that it does not have, by their names.
    """

    entries: tuple[Entry, ...]
    build: Callable[..., Any]
    others: tuple[tuple[str, str], ...] = ()


@frozen
class AnyOf:
    """One of several kinds that differ in their JSON type, or a number or else a word."""

    kinds: tuple[Kind, ...]


@frozen
class JsonSchema:
    """A JSON Schema of an object: a mapping whose `type` is `object`."""


@frozen
class AnyMapping:
    """A mapping with anything JSON can hold."""


Kind: TypeAlias = (
    Text
    | FunctionName
    | Flag
    | Integer
    | Number
    | OneOf
    | ListOf
    | MapOf
    | Record
    | AnyOf
    | JsonSchema
    | AnyMapping
)
"""Any kind of value."""

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FUNCTION = r"^[^\n]+\.py:[A-Za-z_]\w*$(?!\n)"
_VARIABLE: JsonObject = {
    "type": "string",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*(:[^{}]*)?\}$(?!\n)",
}


def nullable(value: JsonObject) -> JsonObject:
    """Allow null in addition to what a schema allows."""
    return {"anyOf": [value, {"type": "null"}]}


def kind_schema(kind: Kind, *, filled: bool = False) -> JsonObject:  # noqa: C901
    """Describe a kind; `filled` asks for at least one item of a list."""
    match kind:
        case Text():
            return {"type": "string"} if kind.blank else {"type": "string", "pattern": r"\S"}
        case FunctionName():
            return {"type": "string", "pattern": _FUNCTION}
        case Flag():
            return _or_variable({"type": "boolean"})
        case Integer():
            return _or_variable(_integer_schema(kind))
        case Number():
            bounds = {
                "minimum": kind.minimum,
                "maximum": kind.maximum,
                "exclusiveMinimum": kind.above,
                "exclusiveMaximum": kind.below,
            }
            return _or_variable({"type": "number", **_set(bounds)})
        case OneOf():
            return _or_variable({"enum": list(kind.choices)})
        case ListOf():
            item = kind_schema(kind.item)
            several: JsonObject = {
                "type": "array",
                "items": item,
                **({"minItems": 1} if filled else {}),
            }
            return {"anyOf": [item, several]} if kind.single else several
        case MapOf():
            keys: JsonObject = (
                {"pattern": r"\S"} if kind.keys is None else {"enum": list(kind.keys)}
            )
            return {
                "type": "object",
                "propertyNames": keys,
                "additionalProperties": kind_schema(kind.value),
            }
        case Record():
            return _record(kind.entries)
        case AnyOf():
            return {"anyOf": [kind_schema(one) for one in kind.kinds]}
        case JsonSchema():
            return {
                "type": "object",
                "properties": {
                    "type": {"const": "object"},
                    "properties": {
                        "type": "object",
                        "additionalProperties": {"type": ["object", "boolean"]},
                    },
                    "required": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["type"],
            }
        case AnyMapping():
            return {"type": "object"}
    assert_never(kind)


def _or_variable(value: JsonObject) -> JsonObject:
    """Allow `${VARIABLE}` where text would otherwise be refused."""
    return {"anyOf": [value, _VARIABLE]}


def _integer_schema(kind: Integer) -> JsonObject:
    bounded: JsonObject = {
        "type": "integer",
        **_set({"minimum": kind.minimum, "maximum": kind.maximum}),
    }
    return {"anyOf": [bounded, {"enum": list(kind.also)}]} if kind.also else bounded


def _set(bounds: dict[str, float | None]) -> JsonObject:
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _record(entries: Sequence[Entry]) -> JsonObject:
    properties: dict[str, JsonValue] = {}
    twice: list[JsonValue] = []
    for entry in entries:
        value = kind_schema(entry.kind)
        described = {**(value if entry.required else nullable(value)), "description": entry.doc}
        properties[entry.name] = described
        if entry.spelling is not None:
            properties[entry.spelling] = described
            twice.append({"required": [entry.name, entry.spelling]})
    record: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": [entry.name for entry in entries if entry.required],
        "additionalProperties": False,
    }
    if twice:
        record["not"] = {"anyOf": twice}
    return record
