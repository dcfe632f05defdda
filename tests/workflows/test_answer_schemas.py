"""The schemas of what workflows ask models for: closed and complete, as strict providers want."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.workflows.evaluator_optimizer import RATING_SCHEMA
from fast_agent.workflows.plan import NextStep, WholePlan
from fast_agent.workflows.router import route_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonObject, JsonValue


def objects(schema: JsonValue) -> Iterator[JsonObject]:
    """Yield every schema of an object."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        (RATING_SCHEMA, 1),
        (route_schema(["ann", "bob"]), 1),
        (WholePlan(["ann"], may_be_empty=False).schema.schema, 3),
        (NextStep(["ann"], may_be_empty=True).schema.schema, 2),
    ],
)
def test_every_object_is_closed_and_requires_all_its_fields(schema: JsonObject, count: int) -> None:
    found = list(objects(schema))
    assert len(found) == count
    for one in found:
        properties = cast("JsonObject", one["properties"])
        assert (one["additionalProperties"], one["required"]) == (False, list(properties))
