from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fast_agent.cards.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
    Whole,
)
from fast_agent.config.fields import SETTINGS
from fast_agent.config.layer import EnvironmentLayer
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.reading import Reader
from fast_agent.config.schema import config_schema

if TYPE_CHECKING:
    from tests.config.conftest import Place

VALIDATOR: Any = Draft202012Validator(config_schema())


def fits(value: object) -> bool:
    return VALIDATOR.is_valid(value)


def test_it_is_a_schema_with_every_section() -> None:
    Draft202012Validator.check_schema(config_schema())
    properties: Any = config_schema()["properties"]
    assert set(properties) == {entry.name for entry in SETTINGS.entries}
    assert set(PROVIDERS) <= set(properties)
    for entry in SETTINGS.entries:
        assert properties[entry.name]["description"] == entry.doc


@pytest.mark.parametrize(
    "value",
    [
        {"shell": {"timeout_seconds": "${T:3}"}},
        {
            "mcp": {
                "servers": {"t": {"command": "x", "args": "${ARGS:[]}", "protocol": "${P:auto}"}}
            }
        },
    ],
)
def test_a_variable_may_stand_for_what_is_no_text(value: object) -> None:
    assert fits(value)


def any_value() -> st.SearchStrategy[Any]:
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-3, 3)
        | st.floats(-3, 3, allow_nan=False)
        | st.sampled_from(["", " ", "x", "stdio", "forms", "auto"])
    )
    return scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.just("a"), scalars)


def right(kind: Kind) -> st.SearchStrategy[Any]:
    """Values that mostly are of a kind."""
    match kind:
        case Text():
            return st.sampled_from(["x", "y z"])
        case Flag():
            return st.booleans()
        case Whole() | Number():
            return st.integers(1, 3) | st.floats(0.5, 1)
        case OneOf():
            return st.sampled_from(kind.choices)
        case ListOf():
            return st.lists(values(kind.item), max_size=2)
        case MapOf():
            return st.dictionaries(st.sampled_from(["a", "b", ""]), values(kind.value), max_size=2)
        case Record():
            fields = {entry.name: values(entry.kind) for entry in kind.entries}
            extra = st.dictionaries(st.sampled_from(["nope", "maxTokens"]), any_value(), max_size=1)
            some = st.fixed_dictionaries({}, optional=fields)
            return st.one_of(some, st.tuples(some, extra).map(lambda pair: pair[0] | pair[1]))
        case AnyOf():
            return st.one_of([values(one) for one in kind.kinds])
        case AnyMapping():
            return st.dictionaries(st.just("k"), st.integers())
        case _:
            return any_value()


@cache
def values(kind: Kind) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: st.one_of(right(kind), right(kind), right(kind), any_value()))


@given(st.dictionaries(st.sampled_from([entry.name for entry in SETTINGS.entries]), st.none()))
def test_unset_sections_are_right(value: dict[str, None]) -> None:
    assert fits(value)


@settings(max_examples=200)
@given(st.data())
def test_schema_and_loader_agree(data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(SETTINGS.entries))
    value = {entry.name: data.draw(values(entry.kind))}
    reader = Reader(EnvironmentLayer({}), Path("/"), {})
    reader.tree(SETTINGS, value)
    assert fits(value) == (not reader.problems), (value, reader.problems)


def test_what_the_schema_refuses_the_whole_loader_refuses(place: Place) -> None:
    place.write("request_params: {max_tokens: 1, maxTokens: 1}")
    assert place.problems()
    assert not fits({"request_params": {"max_tokens": 1, "maxTokens": 1}})
