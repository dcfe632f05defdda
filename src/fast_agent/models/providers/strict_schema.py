"""The forms of JSON Schema that providers hold a model to, and the way back from an answer.

OpenAI (https://platform.openai.com/docs/guides/structured-outputs/supported-schemas): the root is
an object; every object lists all its fields as required and has no others; what may be left out is
null instead; no `allOf`, `not`, `if`, tuples or free keys. Anthropic
(https://platform.claude.com/docs/en/build-with-claude/structured-outputs): objects are closed,
fields may be left out, nothing refers to itself. Bounds of lengths and numbers are left out for
both: an answer is checked against the whole schema when it arrives.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import plain_object

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject

_Json: TypeAlias = "dict[str, Any]"

ROOT: Final = "answer"
"""The field that holds an answer whose own root is not an object."""

_ALLOWED: Final = frozenset(
    {"type", "enum", "const", "description", "properties", "required", "items", "anyOf", "$ref"}
)
_KEPT: Final = frozenset({"type", "enum", "const", "description"})
_UNFOLDED: Final = frozenset({"oneOf", "allOf", "additionalProperties"})
_LEFT_OUT: Final = frozenset(
    {
        *("title", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly"),
        *("writeOnly", "format", "pattern", "minLength", "maxLength", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
        *("uniqueItems", "discriminator", "$defs", "definitions", "contentMediaType"),
    }
)
_SCALARS: Final = {"string": str, "boolean": bool, "array": list, "object": dict}


class _OpenError(Exception):
    """A schema that has no strict form."""


@frozen
class AnswerForm:
    """A schema as a provider takes it.

    Args:
        schema: What is sent.
        source: What was asked for.
        is_strict: Whether the provider can hold the model to it.
        is_wrapped: Whether the answer is the field `answer` of an object.
    """

    schema: JsonObject
    source: JsonObject
    is_strict: bool
    is_wrapped: bool

    def restore(self, text: str) -> str:
        """Return an answer as the schema that was asked for has it; what is not JSON, as it is."""
        if not (self.is_strict or self.is_wrapped):
            return text
        try:
            value: object = json.loads(text)
        except ValueError:
            return text
        inner = value
        if self.is_wrapped and isinstance(value, dict):
            inner = cast("dict[str, object]", value).get(ROOT, cast("object", value))
        source = plain_object(self.source)
        restored = _without_nulls(source, inner, source) if self.is_strict else inner
        return text if restored == value else json.dumps(restored, ensure_ascii=False)


def answer_form(schema: JsonObject, *, all_required: bool, may_recur: bool) -> AnswerForm:
    """Return the strict form of a schema, or the schema itself where it has none.

    Args:
        schema: What the answer must look like.
        all_required: Whether what may be left out is null instead.
        may_recur: Whether something in it may refer to itself.
    """
    source = plain_object(schema)
    wraps = not _is_object(source, source)
    root = _wrapped(source) if wraps else _without_reference(source)
    try:
        if not may_recur and _is_recursive(source):
            raise _OpenError
        strict = _strict(root, all_required)
        definitions = {
            name: _strict(one, all_required) for name, one in _definitions(source).items()
        }
    except _OpenError:
        return AnswerForm(root, schema, is_strict=False, is_wrapped=wraps)
    if definitions:
        strict["$defs"] = definitions
    return AnswerForm(strict, schema, is_strict=True, is_wrapped=wraps)


def _definitions(schema: _Json) -> dict[str, _Json]:
    return {**schema.get("definitions", {}), **schema.get("$defs", {})}


def _name_of(reference: str) -> str:
    for prefix in ("#/$defs/", "#/definitions/"):
        if reference.startswith(prefix):
            return reference.removeprefix(prefix)
    raise _OpenError


def _target(schema: _Json, root: _Json) -> _Json:
    """Follow the references of a schema; one that leads nowhere is returned as it is."""
    seen: set[str] = set()
    while "$ref" in schema and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        try:
            schema = _definitions(root).get(_name_of(schema["$ref"]), {})
        except _OpenError:
            return root if schema["$ref"] == "#" else schema
    return schema


def _is_object(schema: _Json, root: _Json) -> bool:
    found = _target(schema, root)
    return found.get("type") == "object" or ("type" not in found and "properties" in found)


def _wrapped(source: _Json) -> _Json:
    inner = {key: one for key, one in source.items() if key not in {"$defs", "definitions"}}
    root: _Json = {
        "type": "object",
        "properties": {ROOT: inner},
        "required": [ROOT],
        "additionalProperties": False,
    }
    definitions = _definitions(source)
    return {**root, "$defs": definitions} if definitions else root


def _without_reference(source: _Json) -> _Json:
    """Return a schema whose root, as providers want it, is not a reference."""
    if "$ref" not in source:
        return source
    return {**_target(source, source), "$defs": _definitions(source)}


def _is_recursive(root: _Json) -> bool:
    definitions = _definitions(root)

    def reaches(node: object, above: frozenset[str]) -> bool:
        if isinstance(node, list):
            return any(reaches(one, above) for one in cast("list[object]", node))
        if not isinstance(node, dict):
            return False
        fields = cast("_Json", node)
        reference = fields.get("$ref")
        if isinstance(reference, str):
            if reference in above or reference == "#":
                return True
            inner = definitions.get(reference.rpartition("/")[2])
            return reaches(inner, above | {reference})
        return any(
            reaches(one, above)
            for key, one in fields.items()
            if key not in {"$defs", "definitions"}
        )

    return reaches(root, frozenset())


def _strict(schema: object, all_required: bool) -> _Json:
    if not isinstance(schema, dict):
        raise _OpenError  # `true`: anything
    given = cast("_Json", schema)
    kinds = _kinds(given)
    if len(kinds) > 1:  # not every provider takes a list of types
        return {"anyOf": [_strict(_of_kind(given, one), all_required) for one in kinds]}
    if "$ref" in given:
        return {"$ref": f"#/$defs/{_name_of(given['$ref'])}"}
    if given.keys() - _ALLOWED - _LEFT_OUT - _UNFOLDED:
        raise _OpenError
    made: _Json = {key: one for key, one in given.items() if key in _KEPT}
    if given.get("additionalProperties", False) is not False:
        raise _OpenError  # free keys
    branches = given.get("anyOf") or given.get("oneOf")
    if branches:
        made["anyOf"] = [_strict(one, all_required) for one in branches]
    if "items" in given:
        made["items"] = _strict(given["items"], all_required)
    if "allOf" in given:
        if len(given["allOf"]) != 1 or given.keys() & {"properties", "items"}:
            raise _OpenError
        made.update(_strict(given["allOf"][0], all_required))
    return _closed(given, made, all_required)


def _of_kind(given: _Json, kind: str) -> _Json:
    if kind == "null":
        return {"type": "null"}
    return {**given, "type": kind}


def _closed(given: _Json, made: _Json, all_required: bool) -> _Json:
    kinds = _kinds(made)
    if "object" in kinds or "properties" in given:
        fields: _Json = given.get("properties", {})
        if not fields and given.get("additionalProperties") is not False:
            raise _OpenError  # an object with any keys
        required = given.get("required", [])
        made.setdefault("type", "object")
        made["properties"] = {
            name: _field(_strict(one, all_required), name in required or not all_required)
            for name, one in fields.items()
        }
        made["required"] = (
            list(fields) if all_required else [one for one in fields if one in required]
        )
        made["additionalProperties"] = False
    elif "array" in kinds and "items" not in made:
        raise _OpenError  # a list of anything
    elif not made.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
        raise _OpenError  # anything
    return made


def _kinds(schema: _Json) -> list[str]:
    kind: object = schema.get("type")
    if isinstance(kind, list):
        return cast("list[str]", kind)
    return [kind] if isinstance(kind, str) else []


def _field(schema: _Json, required: bool) -> _Json:
    if required or _takes_null(schema):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: _Json) -> bool:
    return "null" in _kinds(schema) or (any(_takes_null(one) for one in schema.get("anyOf", ())))


def _without_nulls(schema: _Json, value: object, root: _Json) -> object:
    """Leave out the fields that are null only because every field had to be given."""
    schema = _target(schema, root)
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if branches:
        fitting = (_target(one, root) for one in branches)
        schema = next((one for one in fitting if _may_be(one, value, root)), schema)
    if isinstance(value, list):
        items = schema.get("items")
        values = cast("list[object]", value)
        if not isinstance(items, dict):
            return values
        return [_without_nulls(cast("_Json", items), one, root) for one in values]
    if not isinstance(value, dict):
        return value
    fields: _Json = schema.get("properties", {})
    required = schema.get("required", [])
    return {
        name: _without_nulls(fields[name], one, root) if name in fields else one
        for name, one in cast("_Json", value).items()
        if one is not None
        or name not in fields
        or name in required
        or _null_fits(fields[name], root)
    }


def _null_fits(schema: object, root: _Json) -> bool:
    if not isinstance(schema, dict):
        return True
    found = _target(cast("_Json", schema), root)
    branches = [*found.get("anyOf", ()), *found.get("oneOf", ())]
    return _takes_null(found) or any(_null_fits(one, root) for one in branches)


def _may_be(schema: _Json, value: object, root: _Json) -> bool:
    """Whether a value is of the kind of a branch, as far as its fields and marks say."""
    kinds = _kinds(schema) or (["object"] if "properties" in schema else [])
    if "const" in schema and schema["const"] != value:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not isinstance(value, dict):
        python = tuple([_SCALARS[one] for one in kinds if one in _SCALARS])
        return not python or isinstance(value, python) or "null" in kinds
    if "object" not in kinds:
        return False
    fields, given = schema.get("properties", {}), cast("_Json", value)
    return set(schema.get("required", ())) <= set(given) and all(
        name in fields and (one is None or _may_be(_target(fields[name], root), one, root))
        for name, one in given.items()
    )
