"""The type of anything JSON can hold, and such values as plain dicts and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON value. Strings are sequences too, so test for `str` before `Sequence`."""

Keys: TypeAlias = "tuple[str | int, ...]"
"""The way to a value: keys and indexes, from the root."""

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""


PlainJson: TypeAlias = "str | int | float | bool | list[PlainJson] | dict[str, PlainJson] | None"


def as_object(value: JsonValue) -> JsonObject:
    """Return a value that is an object; an empty one instead of anything else."""
    return value if isinstance(value, Mapping) else {}


def is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    """Return whether a value is a list."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def as_list(value: JsonValue) -> Sequence[JsonValue]:
    """Return a value that is a list; an empty one instead of anything else."""
    return value if is_list(value) else ()


def value_at(value: JsonValue, path: Keys) -> JsonValue:
    """Return a part of a value; None if there is none."""
    for step in path:
        if isinstance(step, str):
            value = as_object(value).get(step)
        else:
            items = as_list(value)
            value = items[step] if step < len(items) else None
    return value


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
