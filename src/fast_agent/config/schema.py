"""JSON Schema of the configuration, made from its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fast_agent.cards.schema import DIALECT, kind_schema
from fast_agent.config.fields import SETTINGS

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

_FROM_TEXT = frozenset({"integer", "number", "boolean", "array"})
_VARIABLE: JsonObject = {"type": "string", "pattern": r"\$\{"}


def config_schema() -> JsonObject:
    """Describe `fastagent.config.yaml` as JSON Schema, draft 2020-12.

    Returns:
        The schema, complete in itself; secrets files have the same one.
    """
    described = _with_variables(kind_schema(SETTINGS))
    if not isinstance(described, Mapping):
        raise TypeError("the schema of a record is a mapping")
    return {"$schema": DIALECT, "title": "fastagent.config.yaml", **described}


def _with_variables(node: JsonValue) -> JsonValue:
    """Allow `${NAME}` wherever the loader makes another value of its text."""
    if isinstance(node, Mapping):
        walked: JsonObject = {key: _with_variables(value) for key, value in node.items()}
        from_text = node.get("type") in _FROM_TEXT or "enum" in node
        return {"anyOf": [walked, _VARIABLE]} if from_text else walked
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_with_variables(item) for item in node]
    return node
