from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fast_agent.config.fields import SERVER, SETTINGS, config_schema
from fast_agent.config.layer import EnvironmentLayer, LayerReader
from fast_agent.config.providers import PROVIDERS
from fast_agent.schema.kinds import (
    AnyOf,
    Entry,
    Flag,
    Integer,
    Kind,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
)

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


@cache
def sound(kind: Kind) -> st.SearchStrategy[Any]:
    """Values that are of a kind, with no more in them than they need."""
    match kind:
        case Text():
            return st.just("x")
        case Flag():
            return st.booleans()
        case Integer() | Number():
            return st.just(1)
        case OneOf():
            return st.sampled_from(kind.choices)
        case ListOf():
            return st.just([])
        case AnyOf():
            return st.one_of([sound(one) for one in kind.kinds])
        case Record():
            needed = {entry.name: sound(entry.kind) for entry in kind.entries if entry.required}
            return st.fixed_dictionaries(needed)
        case _:
            return st.just({})


@cache
def doubtful(kind: Kind) -> st.SearchStrategy[Any]:
    """Values in which one thing, somewhere, may be of another kind."""
    inside: st.SearchStrategy[Any]
    match kind:
        case ListOf():
            inside = doubtful(kind.item).map(lambda item: [item])
        case MapOf():
            inside = st.tuples(st.sampled_from(["a", "a", "b", "", " "]), doubtful(kind.value)).map(
                lambda pair: {pair[0]: pair[1]}
            )
        case Record():
            inside = st.one_of([doubtful_entry(kind, entry) for entry in kind.entries])
        case AnyOf():
            inside = st.one_of([doubtful(one) for one in kind.kinds])
        case _:
            inside = sound(kind)
    # Seldom wrong at this level, or most examples would be wrong at the top.
    return st.integers(0, 4).flatmap(lambda dice: any_value() if dice == 0 else inside)


def doubtful_entry(kind: Record, entry: Entry) -> st.SearchStrategy[Any]:
    names = [entry.name, *([entry.spelling] if entry.spelling else []), f"{entry.name}x"]
    pairs = st.tuples(st.sampled_from([entry.name, *names]), doubtful(entry.kind))
    return st.tuples(sound(kind), pairs).map(lambda both: both[0] | {both[1][0]: both[1][1]})


@given(st.dictionaries(st.sampled_from([entry.name for entry in SETTINGS.entries]), st.none()))
def test_unset_sections_are_right(value: dict[str, None]) -> None:
    assert fits(value)


SERVERS = doubtful(SERVER).map(lambda server: {"mcp": {"servers": {"a": server}}})
WHOLE = doubtful(SETTINGS).filter(lambda drawn: drawn is not None)


@settings(max_examples=400)
@given(SERVERS | SERVERS | WHOLE)
def test_schema_and_loader_agree(value: Any) -> None:
    reader = LayerReader(EnvironmentLayer({}), Path("/"), {})
    reader.tree(SETTINGS, value)
    assert fits(value) == (not reader.problems), (value, reader.problems)


def test_what_the_schema_refuses_the_whole_loader_refuses(place: Place) -> None:
    place.write("request_params: {max_tokens: 1, maxTokens: 1}")
    assert place.problems()
    assert not fits({"request_params": {"max_tokens": 1, "maxTokens": 1}})
