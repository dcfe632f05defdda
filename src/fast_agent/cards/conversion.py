"""Conversion: from what a card says to what `AgentConfig` holds, strictly and by kind.

Each kind of value becomes one function, made once. It takes a value, the way to it and the
card's findings, and returns the converted value, or `INVALID` after reporting what is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from fast_agent.cards.collector import shown
from fast_agent.cards.explanation import (
    INVALID,
    Variable,
    explain_choice,
    explain_flag,
    explain_function,
    explain_list,
    explain_mapping,
    explain_number,
    explain_range,
    explain_text,
    explain_union,
    explain_unknown_key,
)
from fast_agent.diagnostics import rules
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
    Whole,
)
from fast_agent.text.yaml_nodes import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.cards.collector import DiagnosticCollector, Path
    from fast_agent.schema.kinds import Kind
    from fast_agent.text.json_value import JsonValue


Convert: TypeAlias = "Callable[[Any, Path, DiagnosticCollector], Any]"

_FUNCTION = re.compile(r"[^\n]+\.py:[A-Za-z_]\w*")


def converter(kind: Kind) -> Convert:
    """Make the function that checks and converts values of a kind.

    Args:
        kind: The kind.

    Returns:
        The function.
    """
    return _MAKERS[type(kind)](kind)


def _text(kind: Text) -> Convert:
    blank = kind.blank

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if type(value) is str and value and (blank or not value.isspace()):
            return value
        if isinstance(value, str) and (blank or value.strip()):
            return str(value)
        return explain_text(value, path, findings)

    return convert


def _function(_kind: FunctionName) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if isinstance(value, str) and _FUNCTION.fullmatch(value):
            return str(value)
        return explain_function(value, path, findings)

    return convert


def _flag(_kind: Flag) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if value is True or value is False:
            return value
        if isinstance(value, Variable) and isinstance(found := _resolved(value), bool):
            return found
        return explain_flag(value, path, findings)

    return convert


def _whole(kind: Whole) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        number = _resolved(value) if isinstance(value, Variable) else value
        if type(number) is not int:
            return explain_number(kind, value, path, findings)
        if not kind.allows(number):
            return explain_range(kind, value, path, findings)
        return number

    return convert


def _number(kind: Number) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        number = _resolved(value) if isinstance(value, Variable) else value
        if type(number) is not int and type(number) is not float:
            return explain_number(kind, value, path, findings)
        if not kind.allows(number):
            return explain_range(kind, value, path, findings)
        return number

    return convert


def _one_of(kind: OneOf) -> Convert:
    choices = kind.choices

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if isinstance(value, str) and value in choices:
            return str(value)
        return explain_choice(choices, value, path, findings)

    return convert


def _list_of(kind: ListOf) -> Convert:
    item_of = converter(kind.item)
    single = kind.single

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if not isinstance(value, list):
            if single and isinstance(value, str):
                item = item_of(value, path, findings)
                return INVALID if item is INVALID else (item,)
            return explain_list(kind, value, path, findings)
        items = [
            item_of(item, (*path, index), findings)
            for index, item in enumerate(cast("list[object]", value))
        ]
        return INVALID if INVALID in items else tuple(items)

    return convert


def _map_of(kind: MapOf) -> Convert:
    value_of = converter(kind.value)
    keys = kind.keys

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if not isinstance(value, dict):
            return explain_mapping(kind, value, path, findings)
        result: dict[str, object] = {}
        wrong = False
        for key, item in cast("dict[str, object]", value).items():
            inner = (*path, key)
            if (keys is not None and key not in keys) or not key.strip():
                wrong = True
                explain_unknown_key(key, keys or (), inner, findings)
                continue
            result[key] = value_of(item, inner, findings)
            wrong = wrong or result[key] is INVALID
        return INVALID if wrong else result

    return convert


def _record(kind: Record) -> Convert:
    by_key = {
        key: (entry, converter(entry.kind))
        for entry in kind.entries
        for key in (entry.name, entry.spelling)
        if key is not None
    }
    names = tuple(entry.name for entry in kind.entries)
    required = tuple(entry.name for entry in kind.entries if entry.required)

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if not isinstance(value, dict):
            return explain_mapping(kind, value, path, findings)
        errors = findings.errors
        arguments: dict[str, object] = {}
        spelled: dict[str, str] = {}
        for key, item in cast("dict[str, object]", value).items():
            inner = (*path, key)
            if key not in by_key:
                explain_unknown_key(key, names, inner, findings)
                continue
            entry, value_of = by_key[key]
            other = spelled.setdefault(entry.name, key)
            if other != key:
                message = f"`{shown(inner)}` is given twice, as `{other}` and as `{key}`"
                findings.add(rules.WRONG_TYPE, message, inner, key=True, hint="keep one of them")
            if item is not None:
                arguments[entry.name] = value_of(item, inner, findings)
        for name in required:
            if name not in arguments:
                message = f"`{shown(path)}` needs `{name}`"
                findings.add(rules.MISSING_FIELD, message, path, hint=f"add `{name}: …`")
        return INVALID if findings.errors > errors else kind.build(**arguments)

    return convert


def _any_of(kind: AnyOf) -> Convert:
    branches = [(_shape(one), converter(one)) for one in kind.kinds]
    # A string may be written for a list of one.
    branches += [
        (str, converter(one)) for one in kind.kinds if isinstance(one, ListOf) and one.single
    ]

    shapes = {shape for shape, _ in branches}

    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        shape = str if isinstance(value, str) else type(value)
        if isinstance(value, Variable) and (other := type(_resolved(value))) in shapes:
            shape = other
        for wanted, convert_one in branches:
            if shape is wanted:
                return convert_one(value, path, findings)
        return explain_union(kind, value, path, findings)

    return convert


def _json_schema(_kind: JsonSchema) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if not isinstance(value, dict):
            return explain_mapping(JsonSchema(), value, path, findings)
        schema = cast("dict[str, JsonValue]", value)
        if schema.get("type") != "object":
            place = (*path, "type") if "type" in schema else path
            message = f"`{shown(path)}` must describe an object: its `type` must be `object`"
            findings.add(rules.BAD_VALUE, message, place, hint="write `type: object`")
            return INVALID
        properties = schema.get("properties", {})
        if not isinstance(properties, dict) or not all(
            isinstance(one, dict | bool) for one in properties.values()
        ):
            message = f"`{shown(path)}.properties` must map names to schemas"
            findings.add(rules.BAD_VALUE, message, (*path, "properties"))
            return INVALID
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
            message = f"`{shown(path)}.required` must be a list of names"
            findings.add(rules.BAD_VALUE, message, (*path, "required"))
            return INVALID
        return _plain(schema)

    return convert


def _any_mapping(kind: AnyMapping) -> Convert:
    def convert(value: object, path: Path, findings: DiagnosticCollector) -> object:
        if isinstance(value, dict):
            return _plain(cast("dict[str, JsonValue]", value))
        return explain_mapping(kind, value, path, findings)

    return convert


def _plain(value: JsonValue) -> JsonValue:
    """Copy a value with nothing of this module's own in it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _shape(kind: Kind) -> type:
    if isinstance(kind, ListOf):
        return list
    if isinstance(kind, MapOf | Record | JsonSchema | AnyMapping):
        return dict
    if isinstance(kind, Flag):
        return bool
    return int if isinstance(kind, Whole | Number) else str


def _resolved(value: Variable) -> object:
    try:
        return resolve(str(value))
    except ValueError:
        return str(value)


_MAKERS: dict[type, Callable[[Any], Convert]] = {
    Text: _text,
    FunctionName: _function,
    Flag: _flag,
    Whole: _whole,
    Number: _number,
    OneOf: _one_of,
    ListOf: _list_of,
    MapOf: _map_of,
    Record: _record,
    AnyOf: _any_of,
    JsonSchema: _json_schema,
    AnyMapping: _any_mapping,
}
