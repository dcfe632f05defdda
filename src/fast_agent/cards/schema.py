"""JSON Schema of cards, made from the field table."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.cards.kinds import (
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

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.cards.kinds import Entry, Kind
    from fast_agent.text.json_value import JsonObject, JsonValue

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# `$` alone would let some readers take a line feed at the end.
_NAME = (
    r"^(?=[\s\S]*\S)[^./\\\u0000-\u001F\u007F-\u009F\u2028\u2029]"
    r"[^/\\\u0000-\u001F\u007F-\u009F\u2028\u2029]*$(?!\n)"
)
_FUNCTION = r"^[^\n]+\.py:[A-Za-z_]\w*$(?!\n)"
_VARIABLE: JsonObject = {
    "type": "string",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*(:[^{}]*)?\}$(?!\n)",
}


def schema(card_type: CardType | None = None, *, body: bool = False) -> JsonObject:
    """Describe cards as JSON Schema, draft 2020-12.

    It says all that one file can tell without its neighbours: names of other cards, of servers
    and of files are checked when the set is loaded.

    Args:
        card_type: The type to describe; None describes every type, keyed on `type`, where a card
            without one is an `agent`.
        body: Whether the instruction may stand in the body of a Markdown file, so that the
            frontmatter need not hold it.

    Returns:
        The schema, complete in itself.
    """
    if card_type is not None:
        return {"$schema": DIALECT, **_card(card_type, optional_type=True, body=body)}
    branches: list[JsonValue] = [
        {"if": _has_type(one), "then": {"$ref": f"#/$defs/{one}"}} for one in CARD_TYPES
    ]
    unset: JsonObject = {"properties": {"type": {"type": "null"}}}
    return {
        "$schema": DIALECT,
        "title": "AgentCard",
        "type": "object",
        "properties": {"type": _nullable({"anyOf": [_spelling(one) for one in CARD_TYPES]})},
        "allOf": [*branches, {"if": unset, "then": {"$ref": "#/$defs/agent"}}],
        "$defs": {one: _card(one, optional_type=False, body=body) for one in CARD_TYPES},
    }


def _card(card_type: CardType, *, optional_type: bool, body: bool) -> JsonObject:
    fields = FIELDS_OF[card_type]
    properties: dict[str, JsonValue] = {
        field.name: _property(field, card_type, body=body) for field in fields.values()
    }
    spelling = _spelling(card_type)
    properties["type"] = spelling if card_type != "agent" else _nullable(spelling)
    required = [
        field.name
        for field in fields.values()
        if card_type in field.required and not (body and field.name == "instruction")
    ]
    if optional_type and card_type != "agent":
        required.insert(0, "type")
    card: dict[str, JsonValue] = {
        "title": card_type,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    if "history_mode" in fields:
        card["not"] = {
            "allOf": [
                _given("history_mode"),
                {"anyOf": [_given("history_source"), _given("history_merge_target")]},
            ]
        }
    return card


def _given(name: str) -> JsonObject:
    return {"properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def _property(field: Field, card_type: CardType, *, body: bool) -> JsonObject:
    required = card_type in field.required and not (body and field.name == "instruction")
    value = dict(kind_schema(field.kind, filled=required))
    if field.name == "name":
        value["pattern"] = _NAME
    elif field.name == "instruction" and not required:
        del value["pattern"]  # a blank one counts as not given
    described: dict[str, JsonValue] = value if required else dict(_nullable(value))
    described["description"] = field.doc
    default = field.default_for(card_type)
    if default is not None:
        described["default"] = default
    if field.deprecated is not None:
        described["deprecated"] = True
        described["description"] = f"{field.doc}; write {field.deprecated}"
    return described


def _has_type(card_type: CardType) -> JsonObject:
    return {"properties": {"type": _spelling(card_type)}, "required": ["type"]}


def _spelling(card_type: CardType) -> JsonObject:
    """Match a type as the loader does: whatever its case, with `-` or `_`."""
    letters = [f"[{letter.lower()}{letter.upper()}][-_]*" for letter in card_type.replace("_", "")]
    return {
        "anyOf": [
            {"enum": [card_type]},
            {"type": "string", "pattern": f"^[-_]*{''.join(letters)}$(?!\\n)"},
        ]
    }


def _nullable(value: JsonObject) -> JsonObject:
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
        described = {**(value if entry.required else _nullable(value)), "description": entry.doc}
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
