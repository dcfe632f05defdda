"""What answers vote for, and the red flags."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.agents.output import JsonOutput
from fast_agent.workflows.maker.race import Ballot, Match, canonical

if TYPE_CHECKING:
    from fast_agent.text.json_value import PlainJson

JSON: st.SearchStrategy[PlainJson] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("match", "one", "other", "same"),
    [
        ("exact", "7", "7", True),
        ("exact", "7", "7 ", False),
        ("exact", "Yes", "yes", False),
        ("normalized", "Yes", "yes\n", True),
        ("normalized", "a  b\n\tc", "A b C", True),
        ("normalized", "ﬁne Straße", "fine STRASSE", True),
        ("normalized", "7", "7.", False),
        ("structured", '{"a": 1, "b": [2, null]}', '{"b":[2,null],"a":1}', True),
        ("structured", '{"a": 1}', '```json\n{"a": 1.0}\n```', True),
        ("structured", "[1, 2]", "[2, 1]", False),
        ("structured", "true", "1", False),
        ("structured", '"1"', "1", False),
        ("structured", '"A"', '"a"', False),
    ],
)
def test_when_two_answers_count_as_the_same(match: Match, one: str, other: str, same: bool) -> None:
    ballot = Ballot(match)
    first, second = ballot.read(one), ballot.read(other)
    assert (first.flag, second.flag) == (None, None)
    assert (first.key == second.key) is same
    assert (first.text, second.text) == (one, other)


@pytest.mark.parametrize(
    ("match", "text", "stop_reason", "flag"),
    [
        ("exact", "", None, "empty"),
        ("normalized", " \n\t", "endTurn", "empty"),
        ("exact", "1234567890", "endTurn", None),
        ("exact", "12345678901", "endTurn", "too_long"),
        ("exact", "123", "maxTokens", "cut_short"),
        ("exact", "123", "maxIterations", "cut_short"),
        ("exact", "123", "refusal", "refused"),
        ("structured", "123", "refusal", "refused"),
        ("structured", "it is 7", None, "unparseable"),
        ("structured", '{"a": 1', None, "unparseable"),
        ("structured", "[1] [2]", None, "unparseable"),
        ("structured", "NaN", None, "unparseable"),
        ("exact", "it is 7", None, None),
    ],
)
@pytest.mark.spec("MAKER-3")
def test_red_flags(match: Match, text: str, stop_reason: str | None, flag: str | None) -> None:
    assert Ballot(match, 10).read(text, stop_reason).flag == flag


def test_deep_nesting_is_a_red_flag_and_no_crash() -> None:
    assert Ballot("structured").read("[" * 100_000).flag == "unparseable"


@pytest.mark.parametrize("match", ["exact", "normalized", "structured"])
def test_with_a_shape_what_does_not_fit_is_a_red_flag_in_every_strategy(match: Match) -> None:
    shape = JsonOutput({"type": "object", "required": ["n"], "properties": {"n": {"minimum": 1}}})
    ballot = Ballot(match, shape=shape)
    assert ballot.read('{"n": 3}').value == {"n": 3}
    assert ballot.read('{"n": 0}').flag == "unparseable"
    assert ballot.read("three").flag == "unparseable"


@given(JSON, JSON)
def test_the_key_of_a_value_is_the_same_however_it_is_written(
    one: PlainJson, other: PlainJson
) -> None:
    ballot = Ballot("structured")
    wide = ballot.read(json.dumps(one, indent=3))
    narrow = ballot.read(json.dumps(one, sort_keys=True, ensure_ascii=False))
    assert (wide.flag, narrow.flag) == (None, None)
    assert wide.key == narrow.key
    # Python counts True as 1; JSON does not, as the text shows.
    equal = one == other and _kinds(one) == _kinds(other)
    assert (ballot.read(json.dumps(other)).key == wide.key) is equal


def test_numbers_are_numbers() -> None:
    assert canonical([1.0, -0.0, 1e3, 0.5]) == "[1,0,1000,0.5]"


def _kinds(value: PlainJson) -> object:
    """Return the types in a value, whole and decimal numbers being one."""
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
