"""The one reader of values: what a card or a setting says, checked strictly and by its kind.

Each kind becomes one function. It takes a value, the way to it and the findings of its file, and
returns the value read, or `INVALID` after reporting what is wrong.

A card's values are built at once. Settings come from several layers that are merged before they
are built, so they are read as trees, in a `Form`; `built` makes their values afterwards.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from fast_agent.schema.explanation import (
    INVALID,
    ExpandedText,
    Variable,
    explain_choice,
    explain_flag,
    explain_function,
    explain_list,
    explain_mapping,
    explain_missing,
    explain_number,
    explain_range,
    explain_text,
    explain_twice,
    explain_union,
    explain_unknown_key,
    shown,
)
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    Integer,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    PathText,
    Record,
    SecretText,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.schema.explanation import Findings
    from fast_agent.schema.kinds import Entry, Kind
    from fast_agent.text.json_value import JsonValue, Keys

Read: TypeAlias = "Callable[[Any, Keys, Findings], Any]"
"""Reads a value of one kind."""

ABSENT: Final = object()
"""The result for a value that counts as not given."""


class Form(Protocol):
    """How settings are read as trees: dictionaries and lists that hold what is right."""

    def given(self, kind: Kind, value: JsonValue, path: Keys) -> Any:
        """Return the value to read, with its variables replaced; `ABSENT` where none counts."""
        ...

    def path(self, kind: PathText, text: str) -> str:
        """Return a path from where it starts."""
        ...


_FUNCTION = re.compile(r"[^\n]+\.py:[A-Za-z_]\w*")


def reader(kind: Kind, form: Form | None = None) -> Read:
    """Make the function that reads values of a kind.

    Args:
        kind: The kind.
        form: Reads a tree, in which wrong parts are left out; None builds the values, and a wrong
            part makes the whole `INVALID`.

    Returns:
        The function.
    """
    return _MAKERS[type(kind)](kind, form)


def _text(kind: Text, form: Form | None) -> Read:
    blank = kind.blank

    def read(value: object, path: Keys, findings: Findings) -> object:
        if type(value) is str and value and (blank or not value.isspace()):
            return value
        if isinstance(value, str) and (blank or value.strip()):
            return str(value)
        return explain_text(kind, value, path, findings)

    if form is None or not isinstance(kind, PathText):
        return read

    def read_path(value: object, path: Keys, findings: Findings) -> object:
        text = read(value, path, findings)
        return text if text is INVALID else form.path(kind, cast("str", text))

    return read_path


def _function(_kind: FunctionName, _form: Form | None) -> Read:
    def read(value: object, path: Keys, findings: Findings) -> object:
        if isinstance(value, str) and _FUNCTION.fullmatch(value):
            return str(value)
        return explain_function(value, path, findings)

    return read


def _flag(kind: Flag, _form: Form | None) -> Read:
    def read(value: object, path: Keys, findings: Findings) -> object:
        if value is True or value is False:
            return value
        if isinstance(value, Variable) and isinstance(found := _meaning(kind, value), bool):
            return found
        return explain_flag(value, path, findings)

    return read


def _integer_reader(kind: Integer, _form: Form | None) -> Read:
    def read(value: object, path: Keys, findings: Findings) -> object:
        number = _meaning(kind, value) if isinstance(value, Variable) else value
        if type(number) is not int:
            return explain_number(kind, value, path, findings)
        if not kind.allows(number):
            return explain_range(kind, value, path, findings)
        return number

    return read


def _number(kind: Number, _form: Form | None) -> Read:
    def read(value: object, path: Keys, findings: Findings) -> object:
        number = _meaning(kind, value) if isinstance(value, Variable) else value
        if type(number) is not int and type(number) is not float:
            return explain_number(kind, value, path, findings)
        if not kind.allows(number) or not abs(number) < _INFINITY:
            return explain_range(kind, value, path, findings)
        return number

    return read


_INFINITY: Final = float("inf")


def _one_of(kind: OneOf, _form: Form | None) -> Read:
    choices = kind.choices

    def read(value: object, path: Keys, findings: Findings) -> object:
        if isinstance(value, str) and value in choices:
            return str(value)
        return explain_choice(choices, value, path, findings)

    return read


def _list_of(kind: ListOf, form: Form | None) -> Read:
    read_item = _part(kind.item, form)
    single = kind.single

    def read(value: object, path: Keys, findings: Findings) -> object:
        given = value if form is None else _parsed(value)
        if not isinstance(given, list):
            if not single or (form is None and not isinstance(given, str)):
                return explain_list(kind, value, path, findings)
            item = read_item(value, path, findings)
            if form is None:
                return INVALID if item is INVALID else (item,)
            return [] if item is ABSENT else [item]
        items = [
            read_item(item, (*path, index), findings)
            for index, item in enumerate(cast("list[object]", given))
        ]
        if form is None:
            return INVALID if INVALID in items else tuple(items)
        return [item for item in items if item is not ABSENT]

    return read


def _map_of(kind: MapOf, form: Form | None) -> Read:
    read_value = _part(kind.value, form)
    keys = kind.keys

    def read(value: object, path: Keys, findings: Findings) -> object:
        given = value if form is None else _parsed(value)
        if not isinstance(given, dict):
            return explain_mapping(kind, value, path, findings)
        result: dict[str, object] = {}
        wrong = False
        for key, item in cast("dict[str, object]", given).items():
            inner = (*path, key)
            if (keys is not None and key not in keys) or not key.strip():
                wrong = True
                explain_unknown_key(key, keys or (), inner, findings)
                continue
            one = read_value(item, inner, findings)
            wrong = wrong or one is INVALID
            if one is not ABSENT:
                result[key] = one
        return INVALID if wrong and form is None else result

    return read


def _record(kind: Record, form: Form | None) -> Read:
    entries = {
        key: entry
        for entry in kind.entries
        for key in (entry.name, entry.spelling)
        if key is not None
    }
    readers: dict[str, Read] = {}  # made on first use: most settings are not given
    required = tuple(entry for entry in kind.entries if entry.required)

    def read(value: object, path: Keys, findings: Findings) -> object:
        given = value if form is None else _parsed(value)
        if not isinstance(given, dict):
            return explain_mapping(kind, value, path, findings)
        errors = findings.errors
        arguments: dict[str, object] = {}
        spelled: dict[str, str] = {}
        for key, item in cast("dict[str, object]", given).items():
            inner = (*path, key)
            entry = entries.get(key)
            if entry is None:
                names = tuple(one.name for one in kind.entries)
                explain_unknown_key(key, names, inner, findings, dict(kind.others).get(key))
                continue
            name = entry.name
            if spelled.setdefault(name, key) != key:
                explain_twice(spelled[name], inner, findings)
            if item is not None:
                read_one = readers.get(name) or readers.setdefault(name, _part(entry.kind, form))
                arguments[name] = read_one(item, inner, findings)
        for entry in required:
            if entry.name not in arguments:
                explain_missing(entry, path, findings)
        if form is None:
            return INVALID if findings.errors > errors else kind.build(**arguments)
        right = {name: one for name, one in arguments.items() if one is not ABSENT}
        return right if all(entry.name in right for entry in required) else INVALID

    return read


def _any_of(kind: AnyOf, form: Form | None) -> Read:
    branches = [(_shape(one), reader(one, form)) for one in kind.kinds]
    # A string may be written for a list of one.
    branches += [
        (str, reader(one, form)) for one in kind.kinds if isinstance(one, ListOf) and one.single
    ]

    shapes = {shape for shape, _ in branches}

    def read(value: object, path: Keys, findings: Findings) -> object:
        shape = _shape_of(value)
        if isinstance(value, Variable):
            meant = _shape_of(_meaning(kind, value) if form is None else _parsed(value))
            shape = meant if meant in shapes else shape
        for wanted, read_one in branches:
            if shape is wanted:
                return read_one(value, path, findings)
        return explain_union(kind, value, path, findings)

    return read


def _json_schema(_kind: JsonSchema, form: Form | None) -> Read:
    free = _any_mapping(AnyMapping(), form)

    def read(value: object, path: Keys, findings: Findings) -> object:
        if not isinstance(value, dict):
            return explain_mapping(JsonSchema(), value, path, findings)
        schema = cast("dict[str, JsonValue]", value)
        rule = findings.rules.wrong_value
        if schema.get("type") != "object":
            place = (*path, "type") if "type" in schema else path
            message = f"`{shown(path)}` must describe an object: its `type` must be `object`"
            findings.add(rule, message, place, hint="write `type: object`")
            return INVALID
        properties = schema.get("properties", {})
        if not isinstance(properties, dict) or not all(
            isinstance(one, dict | bool) for one in properties.values()
        ):
            message = f"`{shown(path)}.properties` must map names to schemas"
            findings.add(rule, message, (*path, "properties"))
            return INVALID
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
            message = f"`{shown(path)}.required` must be a list of names"
            findings.add(rule, message, (*path, "required"))
            return INVALID
        return free(schema, path, findings)

    return read


def _any_mapping(kind: AnyMapping, form: Form | None) -> Read:
    def plain(value: object, path: Keys) -> JsonValue:
        """Copy a value with nothing of this module's own in it."""
        if isinstance(value, str):
            value = value if form is None else form.given(Text(blank=True), value, path)
            return None if value is ABSENT else str(value)
        if isinstance(value, dict):
            items = cast("dict[str, object]", value).items()
            return {key: plain(item, (*path, key)) for key, item in items}
        if isinstance(value, list):
            every = enumerate(cast("list[object]", value))
            return [plain(item, (*path, index)) for index, item in every]
        return cast("JsonValue", value)

    def read(value: object, path: Keys, findings: Findings) -> object:
        given = value if form is None else _parsed(value)
        if isinstance(given, dict):
            return plain(cast("dict[str, JsonValue]", given), path)
        return explain_mapping(kind, value, path, findings)

    return read


def _part(kind: Kind, form: Form | None) -> Read:
    """Make the reader of a part of a list or mapping."""
    read = reader(kind, form)
    if form is None:
        return read

    def read_given(value: JsonValue, path: Keys, findings: Findings) -> object:
        given = form.given(kind, value, path)
        one = given if given is ABSENT else read(given, path, findings)
        return ABSENT if one is INVALID else one  # it was reported, and is left out

    return read_given


def _shape(kind: Kind) -> type:
    if isinstance(kind, ListOf):
        return list
    if isinstance(kind, MapOf | Record | JsonSchema | AnyMapping):
        return dict
    if isinstance(kind, Flag):
        return bool
    return int if isinstance(kind, Integer | Number) else str


def _shape_of(value: object) -> type:
    if isinstance(value, str):
        return str
    return int if type(value) is float else type(value)


def takes_text(kind: Kind) -> bool:
    """Return whether any text is a value of a kind."""
    if isinstance(kind, AnyOf):
        return any(map(takes_text, kind.kinds))
    return isinstance(kind, Text)


def _meaning(kind: Kind, value: Variable) -> object:
    """Return what the text of a variable is as an unquoted scalar."""
    from fast_agent.text.yaml_nodes import resolve

    text = value.strip()
    if isinstance(kind, Flag):
        text = {"1": "true", "0": "false"}.get(text, text.lower())
    try:
        return resolve(text)
    except ValueError:
        return str(value)


def _parsed(value: object) -> object:
    """Return what the text of a variable is as a setting, JSON for a list or mapping."""
    if not isinstance(value, Variable):
        return value
    if value.lstrip()[:1] not in {"[", "{"}:
        return _meaning(Text(), value)
    try:
        return _marked(json.loads(value))
    except (ValueError, RecursionError):
        return str(value)


def _marked(value: object) -> object:
    """Mark the texts of a variable's value, so that they are not searched for further variables."""
    if isinstance(value, str):
        return ExpandedText(value)
    if isinstance(value, dict):
        return {key: _marked(one) for key, one in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_marked(one) for one in cast("list[object]", value)]
    return value


_MAKERS: dict[type, Callable[[Any, Form | None], Read]] = {
    Text: _text,
    SecretText: _text,
    PathText: _text,
    FunctionName: _function,
    Flag: _flag,
    Integer: _integer_reader,
    Number: _number,
    OneOf: _one_of,
    ListOf: _list_of,
    MapOf: _map_of,
    Record: _record,
    AnyOf: _any_of,
    JsonSchema: _json_schema,
    AnyMapping: _any_mapping,
}


def entry_of(kind: Record, key: str) -> Entry | None:
    """Find the field of a record by its name or its other spelling."""
    for entry in kind.entries:
        if key in (entry.name, entry.spelling):
            return entry
    return None


def branch_of(kind: AnyOf, value: JsonValue) -> Kind | None:
    """Choose the branch that takes the JSON type of a value."""
    shape = _shape_of(value)
    return next((one for one in kind.kinds if _shape(one) is shape), None)


def built(kind: Kind, value: Any) -> Any:
    """Make the value of a tree.

    Args:
        kind: What it was read as.
        value: The tree, or a part of it.
    """
    match kind:
        case Record():
            kinds = {entry.name: entry.kind for entry in kind.entries}
            return kind.build(**{key: built(kinds[key], inner) for key, inner in value.items()})
        case MapOf():
            return MappingProxyType({key: built(kind.value, one) for key, one in value.items()})
        case ListOf():
            return tuple(built(kind.item, one) for one in value)
        case AnyOf():
            branch = branch_of(kind, value)
            return value if branch is None else built(branch, value)
        case PathText(program=False):
            return value if "://" in value else Path(value)
        case _:
            return value
