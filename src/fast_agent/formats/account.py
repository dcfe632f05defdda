"""The account of an import: values that were neither mapped nor reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.formats.foreign import ForeignFile, Keys
    from fast_agent.text.json_value import JsonObject


def unaccounted(file: ForeignFile) -> list[Keys]:
    """Return the places of values that an import said nothing about; it should be none."""
    told = {*file.mapped, *(note.keys for note in file.notes if note.keys)}
    return list(_untold(file.values, (), told))


def _untold(values: JsonObject, keys: Keys, told: set[Keys]) -> Iterator[Keys]:
    for key, value in values.items():
        place = (*keys, key)
        if place in told or value is None:
            continue
        if isinstance(value, Mapping) and any(one[: len(place)] == place for one in told):
            yield from _untold(value, place, told)
        elif not (isinstance(value, Mapping) and not value):
            yield place
