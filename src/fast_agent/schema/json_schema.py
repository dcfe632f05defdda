"""JSON Schema of kinds of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
    Whole,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.schema.kinds import Entry, Kind
    from fast_agent.text.json_value import JsonObject, JsonValue

DIALECT = "https://json-schema.org/draft/2020-12/schema"

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
        case Whole():
            return _or_variable(_whole(kind))
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


def _whole(kind: Whole) -> JsonObject:
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
