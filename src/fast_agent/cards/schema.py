"""JSON Schema of cards, made from the field table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.schema.kinds import SCHEMA_DIALECT, kind_schema, nullable

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.text.json_value import JsonObject, JsonValue

# `$` alone would let some readers take a line feed at the end.
_NAME = (
    r"^(?=[\s\S]*\S)[^./\\\u0000-\u001F\u007F-\u009F\u2028\u2029]"
    r"[^/\\\u0000-\u001F\u007F-\u009F\u2028\u2029]*$(?!\n)"
)


def schema(card_type: CardType | None = None, *, body: bool = False) -> JsonObject:
    """Describe cards as JSON Schema, draft 2020-12.

    It covers what can be checked in one file: names of other cards, of servers and of files
    are checked when the set is loaded.

    Args:
        card_type: The type to describe; None describes every type, keyed on `type`, where a card
            without one is an `agent`.
        body: Whether the instruction may stand in the body of a Markdown file, so that the
            frontmatter need not hold it.

    Returns:
        The schema, complete in itself.
    """
    if card_type is not None:
        return {"$schema": SCHEMA_DIALECT, **_card(card_type, optional_type=True, body=body)}
    branches: list[JsonValue] = [
        {"if": _has_type(one), "then": {"$ref": f"#/$defs/{one}"}} for one in CARD_TYPES
    ]
    unset: JsonObject = {"properties": {"type": {"type": "null"}}}
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "AgentCard",
        "type": "object",
        "properties": {"type": nullable({"anyOf": [_spelling(one) for one in CARD_TYPES]})},
        "allOf": [*branches, {"if": unset, "then": {"$ref": "#/$defs/agent"}}],
        "$defs": {one: _card(one, optional_type=False, body=body) for one in CARD_TYPES},
    }


def _card(card_type: CardType, *, optional_type: bool, body: bool) -> JsonObject:
    fields = FIELDS_OF[card_type]
    properties: dict[str, JsonValue] = {
        field.name: _property(field, card_type, body=body) for field in fields.values()
    }
    spelling = _spelling(card_type)
    properties["type"] = spelling if card_type != "agent" else nullable(spelling)
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
                _is_given("history_mode"),
                {"anyOf": [_is_given("history_source"), _is_given("history_merge_target")]},
            ]
        }
    return card


def _is_given(name: str) -> JsonObject:
    return {"properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def _property(field: Field, card_type: CardType, *, body: bool) -> JsonObject:
    required = card_type in field.required and not (body and field.name == "instruction")
    value = dict(kind_schema(field.kind, filled=required))
    if field.name == "name":
        value["pattern"] = _NAME
    elif field.name == "instruction" and not required:
        del value["pattern"]  # a blank one counts as not given
    described: dict[str, JsonValue] = value if required else dict(nullable(value))
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
