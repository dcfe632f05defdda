"""Forty schemas of structured answers, each with a value that fits it; and twenty that are none."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]

_S: Final[Schema] = {"type": "string"}
_I: Final[Schema] = {"type": "integer"}
_ROW: Final[Schema] = {"type": "object", "properties": {"a": _S}, "required": ["a"]}
_TREE: Final[Schema] = {
    "type": "object",
    "properties": {"name": _S, "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["name"],
}


def obj(required: str = "", **fields: Schema | bool) -> Schema:
    return {"type": "object", "properties": fields, "required": required.split()}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


_DOG: Final = obj("kind bark", kind={"const": "dog"}, bark=_S)
_CAT: Final = obj("kind", kind={"const": "cat"}, lives=_I)

GOOD: Final[dict[str, tuple[Schema, object]]] = {
    "one-field": (obj("a", a=_S), {"a": "x"}),
    "optional": (obj("a", a=_S, b=_I), {"a": "x"}),
    "all-optional": (obj("", a=_S, b=_I), {}),
    "optional-given": (obj("", a=_S, b=_I), {"b": 2}),
    "nullable": (obj("a", a=either(_S, {"type": "null"})), {"a": None}),
    "nullable-type-list": (obj("a", a={"type": ["string", "null"]}), {"a": None}),
    "nullable-optional": (obj("", a=either(_S, {"type": "null"})), {"a": None}),
    "default": (obj("", a={"type": "integer", "default": 3}), {}),
    "enum": (obj("a", a={"enum": ["x", "y"]}), {"a": "y"}),
    "const": (obj("a", a={"const": "x"}), {"a": "x"}),
    "bounds": (obj("a", a={"type": "integer", "minimum": 1, "maximum": 9}), {"a": 5}),
    "lengths": (obj("a", a={"type": "string", "minLength": 1, "pattern": "^x"}), {"a": "xy"}),
    "format": (obj("a", a={"type": "string", "format": "date"}), {"a": "2026-01-01"}),
    "titles": ({**obj("a", a={"title": "A", **_S}), "title": "T", "description": "d"}, {"a": "x"}),
    "nested": (obj("a", a=obj("b", b=obj("c", c=_S))), {"a": {"b": {"c": "x"}}}),
    "nested-optional": (obj("a", a=obj("", b=obj("", c=_S))), {"a": {"b": {}}}),
    "list": (obj("a", a=listed(_S)), {"a": ["x", "y"]}),
    "list-of-rows": (obj("a", a=listed(obj("b", b=_S, c=_I))), {"a": [{"b": "x"}]}),
    "list-of-lists": (obj("a", a=listed(listed(_I))), {"a": [[1], []]}),
    "bounded-list": (obj("a", a={**listed(_I), "minItems": 1, "uniqueItems": True}), {"a": [1]}),
    "dict": ({"type": "object", "additionalProperties": _I}, {"x": 1}),
    "field-dict": (obj("a", a={"type": "object", "additionalProperties": _S}), {"a": {"k": "v"}}),
    "any-object": (obj("a", a={"type": "object"}), {"a": {"k": [1, {}]}}),
    "any-list": (obj("a", a={"type": "array"}), {"a": [1, "x"]}),
    "anything": (obj("a", a=True), {"a": {"b": 1}}),
    "closed": ({**obj("a", a=_S), "additionalProperties": False}, {"a": "x"}),
    "union": (obj("a", a=either(_S, _I)), {"a": 4}),
    "union-of-objects": (obj("a", a=either(_DOG, _CAT)), {"a": {"kind": "cat"}}),
    "one-of": (obj("a", a={"oneOf": [_DOG, _CAT]}), {"a": {"kind": "dog", "bark": "wau"}}),
    "union-with-list": (obj("a", a=either(_ROW, listed(_ROW))), {"a": [{"a": "x"}]}),
    "reference": (
        {**obj("a", a={"$ref": "#/$defs/Row"}), "$defs": {"Row": _ROW}},
        {"a": {"a": "x"}},
    ),
    "all-of-one": (
        {**obj("a", a={"allOf": [{"$ref": "#/$defs/Row"}]}), "$defs": {"Row": _ROW}},
        {"a": {"a": "x"}},
    ),
    "definitions": (
        {**obj("a", a={"$ref": "#/definitions/Row"}), "definitions": {"Row": _ROW}},
        {"a": {"a": "x"}},
    ),
    "recursive": (
        {**obj("t", t={"$ref": "#/$defs/Tree"}), "$defs": {"Tree": _TREE}},
        {"t": {"name": "x", "kids": [{"name": "y"}]}},
    ),
    "recursive-root": (
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": _TREE}},
        {"name": "x", "kids": [{"name": "y", "kids": []}]},
    ),
    "list-root": (listed(_ROW), [{"a": "x"}]),
    "string-root": ({"type": "string"}, "x"),
    "number-root": ({"type": "number"}, 1.5),
    "union-root": (either(_DOG, _CAT), {"kind": "cat", "lives": 9}),
    "list-of-references-root": (
        {**listed({"$ref": "#/$defs/Row"}), "$defs": {"Row": _ROW}},
        [{"a": "x"}],
    ),
}
"""Schemas people ask for."""

BAD: Final[dict[str, Schema]] = {
    "unknown-type": {"type": "text"},
    "type-number": {"type": 3},
    "types-repeated": {"type": ["string", "string"]},
    "properties-list": {"type": "object", "properties": ["a"]},
    "property-text": {"type": "object", "properties": {"a": "string"}},
    "required-text": {"type": "object", "required": "a"},
    "required-numbers": {"type": "object", "required": [1]},
    "required-repeated": {"type": "object", "required": ["a", "a"]},
    "enum-text": {"enum": "a"},
    "items-list": {"type": "array", "items": [{"type": "string"}]},
    "any-of-object": {"anyOf": {"type": "string"}},
    "any-of-empty": {"anyOf": []},
    "minimum-text": {"type": "integer", "minimum": "1"},
    "negative-length": {"type": "string", "minLength": -1},
    "multiple-of-zero": {"type": "integer", "multipleOf": 0},
    "pattern-number": {"type": "string", "pattern": 3},
    "additional-text": {"type": "object", "additionalProperties": "no"},
    "definitions-list": {"$defs": [], "type": "object"},
    "reference-number": {"$ref": 3},
    "not-text": {"not": "string"},
}
"""What is not a JSON Schema."""
