"""One reader for cards and settings: what both forms take, and what each says of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards.document import CardDocument, DiagnosticCollector, read_yaml
from fast_agent.config.layer import EnvironmentLayer, LayerReader
from fast_agent.schema.explanation import INVALID, Variable
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Entry,
    Flag,
    FunctionName,
    Integer,
    ListOf,
    MapOf,
    Number,
    OneOf,
    PathText,
    Record,
    Text,
)
from fast_agent.schema.reader import built, reader
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from fast_agent.schema.kinds import Kind

POINT = Record(
    (
        Entry("x", Integer(minimum=0), "how far to the right", effects=(), required=True),
        Entry("y_axis", Number(below=9), "how far up", effects=(), spelling="yAxis"),
        Entry("tags", ListOf(Text(), single=True), "its tags", effects=()),
    ),
    build=dict,
)
KINDS: tuple[Kind, ...] = (
    Text(),
    Text(blank=True),
    Flag(),
    Integer(minimum=1, maximum=9, also=(-1,)),
    Number(above=0, maximum=1),
    OneOf(("red", "green")),
    FunctionName(),
    ListOf(Integer()),
    ListOf(Text(), single=True),
    MapOf(Flag()),
    MapOf(Text(), keys=("a", "b")),
    POINT,
    ListOf(POINT),
    AnyOf((Text(), ListOf(Text()))),
    AnyOf((Number(minimum=0), OneOf(("all",)))),
    AnyMapping(),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 10)
    | st.sampled_from([0.5, 1.5, float("inf"), "", " ", "red", "all", "a.py:f", "x"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "x", "y_axis", "yAxis", "tags", " "]), inner)
    ),
    max_leaves=5,
)


def as_card(kind: Kind, value: object) -> tuple[object, list[str]]:
    """Read a value as a field of a card, with the messages."""
    findings = DiagnosticCollector(_document())
    read = reader(kind)(value, ("field",), findings)
    return read, [one.message for one in findings.diagnostics]


def as_setting(kind: Kind, value: Any) -> tuple[object, list[str]]:
    """Read a value as a setting, with the messages."""
    layer = LayerReader(EnvironmentLayer({}), Path("/place"), {})
    read = reader(kind, layer)(value, ("field",), layer)
    return read, [one.message for one in layer.problems]


def _document() -> CardDocument:
    return read_yaml(Source("a.yaml", "field: here\n"), multi_card=False).documents[0]


@given(st.sampled_from(KINDS), VALUES)
def test_both_forms_take_the_same_values_and_make_the_same_of_them(
    kind: Kind, value: object
) -> None:
    card, card_messages = as_card(kind, value)
    setting, setting_messages = as_setting(kind, value)
    assert bool(card_messages) == bool(setting_messages), (card_messages, setting_messages)
    assert (card is INVALID) == bool(card_messages)
    if not card_messages:
        assert _plain(built(kind, setting)) == _plain(card)


def _plain(value: Any) -> Any:
    """A value with its read-only mappings and tuples as JSON has them."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in cast("Mapping[str, Any]", value).items()}
    return value


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Text(), 3, "must be a string, not the number `3`"),
        (Text(), "  ", "must not be empty"),
        (PathText(), 3, "must be a path, not the number `3`"),
        (Flag(), "yes", "must be `true` or `false`, not the string `yes`"),
        (Integer(minimum=2), 1, "must be a whole number of at least 2, not the number `1`"),
        (Integer(), True, "must be a whole number, not `true`"),
        (Number(above=0, maximum=2), 0, "must be a number above 0 and up to 2, not the number `0`"),
        (OneOf(("a", "b")), "c", "must be one of `a` or `b`, not the string `c`"),
        (ListOf(PathText()), "zz", "must be a list of paths, not the string `zz`"),
        (ListOf(POINT), {}, "must be a list of entries, not a mapping"),
        (MapOf(Text()), None, "must be a mapping, not empty (null)"),
        (POINT, [], "must be a mapping of its fields, not a list"),
        (POINT, {"x": 1, "y_axis": 1, "yAxis": 2}, "is given twice, as `y_axis` and as `yAxis`"),
        (POINT, {}, "needs `x`"),
        (FunctionName(), "f", "must have the form `file.py:name`, not the string `f`"),
    ],
)
def test_a_card_says_what_is_wrong_and_a_setting_never_shows_the_value(
    kind: Kind, value: object, message: str
) -> None:
    assert message in as_card(kind, value)[1][0]
    (said,) = as_setting(kind, value)[1]
    assert said.startswith("`field")
    assert all(f"`{secret}`" not in said for secret in ("3", "yes", "0", "1", "c", "zz"))


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (Text(), 3, "put it in quotes"),
        (Text(), ["a"], None),
        (Flag(), "on", "write `true`"),
        (Integer(), "3", "leave out the quotes"),
        (Integer(), 3.0, None),
        (Number(), "1.5", "leave out the quotes"),
        (Number(), "many", None),
        (ListOf(Text()), "a", "put it in brackets: `[…]`"),
        (ListOf(Text()), 3, None),
        (OneOf(("red", "green")), "gren", "did you mean `green`?"),
    ],
)
def test_a_setting_gets_a_remedy_without_its_value(
    kind: Kind, value: Any, hint: str | None
) -> None:
    layer = LayerReader(EnvironmentLayer({}), Path("/place"), {})
    reader(kind, layer)(value, ("field",), layer)
    assert [one.hint for one in layer.problems] == [hint]


def test_an_unknown_key_is_named_with_the_one_that_is_meant() -> None:
    read, messages = as_card(POINT, {"x": 1, "tgas": ["a"]})
    assert (read, messages) == (INVALID, ["`field` has no field `tgas`"])
    read, messages = as_setting(POINT, {"x": 1, "tgas": ["a"]})
    assert (read, messages) == ({"x": 1}, ["`field` has no key `tgas`"])


def test_a_tree_keeps_what_is_right() -> None:
    value = [{"x": 1, "tags": ["a", 2]}, {"y_axis": 3}, {"x": "no"}, 4]
    read, messages = as_setting(ListOf(POINT), value)
    assert read == [{"x": 1, "tags": ["a"]}]
    assert len(messages) == 4


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        (Flag(), "TRUE", True),
        (Flag(), "0", False),
        (Integer(), " 7 ", 7),
        (Number(), "0.5", 0.5),
        (Text(), "7", "7"),
        (OneOf(("1", "2")), "1", "1"),
        (ListOf(Text()), '["a", "${HOME}"]', ["a", "${HOME}"]),
        (ListOf(Text(), single=True), "a", ["a"]),
        (MapOf(Integer()), '{"a": 1}', {"a": 1}),
        (POINT, '{"x": 1}', {"x": 1}),
        (AnyOf((Number(), Text())), "x", "x"),
        (AnyOf((Number(), Text())), "2", 2),
        (AnyOf((Number(), OneOf(("all",)))), "0.5", 0.5),
        (AnyOf((Flag(), POINT)), '{"x": 1}', {"x": 1}),
    ],
)
def test_the_text_of_a_variable_becomes_what_its_setting_takes(
    kind: Kind, text: str, read: object
) -> None:
    assert as_setting(kind, Variable(text)) == (read, [])


def test_a_variable_may_be_any_number_a_card_takes() -> None:
    kind = AnyOf((Number(), OneOf(("all",))))
    assert [as_card(kind, Variable(text)) for text in ("0.5", "2", "all")] == [
        (0.5, []), (2, []), ("all", [])]  # fmt: skip


@pytest.mark.parametrize("text", ['["a"]', '{"x": 1}'])
def test_a_variable_gives_a_card_no_lists_or_mappings(text: str) -> None:
    for kind in (ListOf(Text()), POINT, AnyMapping()):
        read, messages = as_card(kind, Variable(text))
        assert read is INVALID
        assert messages[0].endswith("not the value of that variable")


def test_paths_start_where_the_layer_is() -> None:
    assert as_setting(PathText(), "a/b") == ("/place/a/b", [])
    assert as_setting(PathText(), "file:///a") == ("file:///a", [])
    assert as_setting(PathText(program=True), "git") == ("git", [])
    assert built(PathText(), "/place/a") == Path("/place/a")
