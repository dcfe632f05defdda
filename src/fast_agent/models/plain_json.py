"""Plain dicts and lists of a JSON value, as serialisers and native code want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

PlainJson: TypeAlias = "str | int | float | bool | list[PlainJson] | dict[str, PlainJson] | None"


def plain_json(value: JsonValue) -> PlainJson:
    """Copy a JSON value into new dicts and lists."""
    if isinstance(value, Mapping):
        return plain_object(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_json(item) for item in value]
    return value


def plain_object(value: JsonObject) -> dict[str, PlainJson]:
    """Copy a JSON object into a new dict."""
    return {key: plain_json(item) for key, item in value.items()}
