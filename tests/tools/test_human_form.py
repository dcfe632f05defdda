from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import ToolError
from fast_agent.tools.human import form_fields, schema_problem

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": ["a"]}


def test_fields_keep_their_order_and_say_what_they_are() -> None:
    first, second = form_fields(
        form(
            b={"type": "integer", "title": "Size", "description": "How big.", "default": 3},
            a={"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
        )
    )
    assert (first.name, first.label, first.description) == ("b", "Size", "How big.")
    assert (first.kind, first.required, first.default) == ("integer", False, 3)
    assert (second.label, second.required) == ("a", True)
    assert second.choices == (("x", "Ex"), ("y", "Why"))


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " words ", "words"),
        ({"type": "integer"}, "12", 12),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "enum": ["x", "y"]}, "y", "y"),
        ({"type": "string", "enum": ["x", "y"]}, "1", "x"),
        ({"oneOf": [{"const": "r", "title": "Red"}]}, "Red", "r"),
        ({"type": "array", "items": {"enum": ["x", "y"]}}, "2, x", ["y", "x"]),
        ({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}}, "1", ["r"]),
    ],
)
def test_what_a_person_types_becomes_a_value(
    schema: dict[str, Any], text: str, value: JsonValue
) -> None:
    (field,) = form_fields(form(a=schema))
    assert field.parse(text) == value


@pytest.mark.parametrize(
    ("schema", "text", "words"),
    [
        ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "number"}, "many", "a number"),
        ({"type": "boolean"}, "perhaps", "`yes` or `no`"),
        ({"type": "string", "enum": ["x", "y"]}, "3", "from 1 to 2"),
        ({"type": "integer", "minimum": 5}, "4", "less than the minimum"),
        ({"type": "string", "maxLength": 2}, "abc", "too long"),
        ({"type": "string", "format": "email"}, "nobody", "not a 'email'"),
        ({"type": "array", "items": {"enum": ["x"]}, "minItems": 2}, "x", "too short"),
        ({"type": "array", "items": {"enum": ["x"]}}, "y", "from 1 to 1"),
        ({"type": "string", "minLength": "three"}, "abc", "the form is wrong"),
    ],
)
def test_what_does_not_fit_says_why(schema: dict[str, Any], text: str, words: str) -> None:
    (field,) = form_fields(form(a=schema))
    with pytest.raises(ToolError, match=words):
        field.parse(text)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "must be of type `object`"),
        ({"type": "object", "properties": {}}, "must be of type `object`"),
        ({"type": "object", "properties": {"a": 3}}, "`schema.properties.a` must be an object"),
        (form(a={"type": "object"}), "`schema.properties.a` must be a string, number"),
        (form(a={"type": "array", "items": {"type": "string"}}), "must be a string, number"),
        (form(**{f"f{n}": {"type": "string"} for n in range(51)}), "more than 50 fields"),
    ],
)
def test_a_form_must_be_flat(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        form_fields(schema)


def test_a_whole_answer_is_checked() -> None:
    schema = form(a={"type": "integer"})
    assert schema_problem({"a": 1}, schema) is None
    assert schema_problem({"a": "x"}, schema) == "`a`: 'x' is not of type 'integer'"
    assert "'a' is a required property" in str(schema_problem({}, schema))
