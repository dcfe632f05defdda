"""The fields of an agent as a card would give them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeGuard, cast

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.dump_problem import DumpProblem
from fast_agent.cards.fields import FIELD_NAMED, FIELDS_OF
from fast_agent.cards.kinds import AnyOf, ListOf, MapOf, Record
from fast_agent.diagnostics import dump_rules
from fast_agent.text.environment import escape, has_variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.cards.fields import Field
    from fast_agent.cards.kinds import Kind
    from fast_agent.text.json_value import JsonObject, JsonValue

_SURE = ("type", "name")
_DEFAULTS: Mapping[str, object] = {one.name: one.default for one in fields(AgentConfig)}


def field_values(
    config: AgentConfig,
    *,
    written: JsonObject | None,
    moved: Moved,
) -> tuple[dict[str, JsonValue], list[DumpProblem]]:
    """Collect what a card must say to make this agent.

    Args:
        config: The agent.
        written: The values of the card it came from as they are written, variables in place;
            None for an agent made in Python.
        moved: How its relative paths change.

    Returns:
        The values by field, in the order of the field table and without those a card need not
        give, and what cannot be said in a card.
    """
    values: dict[str, JsonValue] = {}
    problems: list[DumpProblem] = []
    for field in FIELDS_OF[config.type].values():
        if field.deprecated is not None:
            continue
        held: object = getattr(config, field.name)
        if field.name not in _SURE and held == _DEFAULTS[field.name]:
            continue
        raw = None if written is None else written.get(field.name)
        try:
            if raw is not None and _has_variable(raw):
                value = _spelled(field.kind, raw)
            else:
                value = _escaped(_plain(held))
            values[field.name] = moved.rewrite(field, value)
        except _NotWritableError as error:
            problems.append(error.problem(config, field.name))
    problems.extend(_foreign(config))
    return values, problems


class Moved:
    """How relative paths change when a card goes from one directory to another.

    Args:
        before: The directory they start from now; None where there is none.
        after: The directory they will start from.
    """

    __slots__ = ("_after", "_before")

    def __init__(self, before: Path | None, after: Path) -> None:
        self._before = None if before is None else Path(os.path.realpath(before))
        self._after = Path(os.path.realpath(after))

    def rewrite(self, field: Field, value: JsonValue) -> JsonValue:
        """Rewrite the paths in a field's value; a field without paths is left alone."""
        if field.holds == "path":
            return _each_text(value, self._path)
        if field.holds == "function":
            return _each_text(value, self._function)
        return value

    def _function(self, text: str) -> str:
        path, colon, name = text.rpartition(":")
        return f"{self._path(path)}{colon}{name}"

    def _path(self, text: str) -> str:
        if self._before == self._after or text.startswith("~") or PurePath(text).is_absolute():
            return text
        if self._before is None:
            raise _NotWritableError(
                dump_rules.DUMP_PATH,
                f"holds the relative path `{text}`, and nothing says where it starts",
                "use an absolute path",
            )
        try:
            return Path(os.path.relpath(self._before / text, self._after)).as_posix()
        except ValueError:
            raise _NotWritableError(
                dump_rules.DUMP_PATH,
                f"holds the path `{text}`, which leads to another drive from there",
                "dump to the same drive, or use an absolute path",
            ) from None


class _NotWritableError(Exception):
    def __init__(self, code: str, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.hint = hint

    def problem(self, config: AgentConfig, field: str) -> DumpProblem:
        message = f"`{field}` of `{config.name}` {self.reason}"
        return DumpProblem(self.code, message, self.hint, str(config.source or ""))


def _plain(held: object) -> JsonValue:
    """Turn a value of `AgentConfig` into what a card holds."""
    if held is None or isinstance(held, str | int | float):
        return held
    if isinstance(held, Mapping):
        mapping = cast("Mapping[str, object]", held)
        return {str(key): _plain(value) for key, value in mapping.items()}
    if isinstance(held, Sequence):
        return [_plain(item) for item in cast("Sequence[object]", held)]
    if is_dataclass(held) and not isinstance(held, type):
        given = {one.name: cast("object", getattr(held, one.name)) for one in fields(held)}
        return {name: _plain(value) for name, value in given.items() if value is not None}
    if callable(held):
        name = getattr(held, "__qualname__", None) or repr(held)
        raise _NotWritableError(
            dump_rules.DUMP_CALLABLE,
            f"holds the function `{name}`, which a card cannot name",
            "put it in a file and write `file.py:name`",
        )
    raise _NotWritableError(
        dump_rules.DUMP_VALUE,
        f"holds a `{type(held).__name__}`, which a card cannot hold",
        "use text, numbers, booleans, lists and mappings",
    )


def _foreign(config: AgentConfig) -> list[DumpProblem]:
    """Find fields that are set and that the agent's type does not have."""
    own = FIELDS_OF[config.type]
    return [
        DumpProblem(
            dump_rules.DUMP_VALUE,
            f"`{name}` of `{config.name}` is set, and a card of type `{config.type}` has no such"
            " field",
            "leave it out",
            str(config.source or ""),
        )
        for name, field in FIELD_NAMED.items()
        if name not in own and field.deprecated is None and getattr(config, name) != _DEFAULTS[name]
    ]


def _spelled(kind: Kind, raw: JsonValue) -> JsonValue:
    """Bring a written value into the form it is dumped in, text for text."""
    if isinstance(kind, ListOf):
        items = raw if _is_list(raw) else [raw]
        return [_spelled(kind.item, item) for item in items]
    if isinstance(kind, MapOf) and isinstance(raw, Mapping):
        return {key: _spelled(kind.value, item) for key, item in raw.items()}
    if isinstance(kind, Record) and isinstance(raw, Mapping):
        return _spelled_record(kind, raw)
    if isinstance(kind, AnyOf):
        return _spelled(_fitting(kind, raw), raw)
    return raw


def _spelled_record(kind: Record, raw: JsonObject) -> JsonObject:
    found: dict[str, JsonValue] = {}
    for entry in kind.entries:
        value = raw.get(entry.name, raw.get(entry.spelling) if entry.spelling else None)
        if value is not None:
            found[entry.name] = _spelled(entry.kind, value)
    return found


def _fitting(kind: AnyOf, raw: JsonValue) -> Kind:
    wants_mapping = isinstance(raw, Mapping)
    for one in kind.kinds:
        if isinstance(one, MapOf | Record) == wants_mapping:
            return one
    return kind.kinds[0]


def _has_variable(value: JsonValue) -> bool:
    return any(has_variable(text) for text in _texts(value))


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if _is_list(value):
        return [text for item in value for text in _texts(item)]
    return []


def _escaped(value: JsonValue) -> JsonValue:
    return _each_text(value, escape)


def _each_text(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(item, change) for key, item in value.items()}
    if _is_list(value):
        return [_each_text(item, change) for item in value]
    return value


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
