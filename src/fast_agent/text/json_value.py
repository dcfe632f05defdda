"""The type of anything JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON value. Strings are sequences too, so test for `str` before `Sequence`."""

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""
