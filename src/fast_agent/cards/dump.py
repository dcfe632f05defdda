"""Agents written back as cards: Markdown or YAML, with nothing lost and nothing frozen."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card_files import is_configuration, is_skill
from fast_agent.cards.directory_writer import (
    DumpProblem,
    file_stem,
    name_problems,
    refuse,
    write_directory,
)
from fast_agent.cards.document import DiagnosticCollector, read_markdown, read_yaml
from fast_agent.cards.fields import FIELD_NAMED, FIELDS_OF
from fast_agent.cards.validate import Origin, check_body, validate_card
from fast_agent.diagnostics import rules
from fast_agent.errors import CardError
from fast_agent.schema.kinds import AnyOf, ListOf, MapOf, Record
from fast_agent.text.environment import escape, has_variable
from fast_agent.text.json_value import is_list
from fast_agent.text.safe_file import folded_name
from fast_agent.text.source import Source
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.text.yaml_writer import UnwritableValueError, write_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.cards.fields import Field
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.schema.kinds import Kind
    from fast_agent.text.json_value import JsonObject, JsonValue


CardFormat: TypeAlias = Literal["markdown", "yaml"]

SUFFIXES: Mapping[CardFormat, tuple[str, ...]] = MappingProxyType(
    {"markdown": (".md", ".markdown"), "yaml": (".yaml", ".yml")}
)
"""The suffixes of each format in lower case; a dump uses the first."""


def dump_card(
    config: AgentConfig,
    card_format: CardFormat = "markdown",
    *,
    directory: Path | None = None,
    written: JsonObject | None = None,
    base: Path | None = None,
) -> str:
    """Write an agent as the text of a card.

    Fields with their default value are left out, `${VARIABLES}` and `{{placeholders}}` stay as
    they are written, and relative paths are rewritten to lead to the same files.

    Args:
        config: The agent.
        card_format: Markdown with the instruction as body, or YAML.
        directory: Where the card will stand; None for the directory it has now.
        written: The values of its card before variables were replaced; None for an agent made
            in Python.
        base: Where relative paths of an agent without a file start.

    Returns:
        The text of the card, with a final line end.

    Raises:
        CardError: Something in the agent has no counterpart in a card.
    """
    text, problems = _card_text(config, card_format, directory, written, base)
    refuse(problems)
    return text


def dump_one(
    load_set: LoadSet,
    name: str,
    file: Path,
    card_format: CardFormat = "markdown",
    *,
    base: Path | None = None,
) -> Path:
    """Write one agent to a file.

    Args:
        load_set: The set it is in.
        name: The agent.
        file: The file, whose suffix fits the format; its directory is made when missing.
        card_format: Markdown or YAML.
        base: Where relative paths of an agent without a file start.

    Returns:
        The file.

    Raises:
        CardError: There is no such agent, the file would not be a card, the agent cannot be said in
            a card, or the file cannot be written. Nothing was written.
    """
    card = load_set.cards.get(name)
    if card is None:
        near = closest(name, load_set.cards)
        raise CardError(
            f"no agent is named `{name}`",
            hint=did_you_mean(near),
        )
    refuse(_file_name_problems(file.name, card_format))
    text, problems = _card_text(card.config, card_format, file.parent, card.written, base)
    refuse(problems)
    return write_directory(file.parent, {file.name: text.encode()})[0]


def dump_set(
    load_set: LoadSet,
    directory: Path,
    card_format: CardFormat = "markdown",
    *,
    base: Path | None = None,
) -> list[Path]:
    """Write every agent of a set into a directory, each to a file called as the agent.

    Args:
        load_set: The agents.
        directory: Where to write; made when missing, not a symbolic link.
        card_format: Markdown or YAML.
        base: Where relative paths of an agent without a file start.

    Returns:
        The files, in load order.

    Raises:
        CardError: Any agent cannot be written; the diagnostics hold all reasons. Nothing was
            written.
    """
    suffix = SUFFIXES[card_format][0]
    files: dict[str, bytes] = {}
    problems: list[DumpProblem] = []
    taken: dict[str, str] = {}
    for name, card in load_set.cards.items():
        file_name = f"{file_stem(name)}{suffix}"
        text, found = _card_text(card.config, card_format, directory, card.written, base)
        problems += _file_name_problems(file_name, card_format) or found
        other = taken.setdefault(folded_name(file_name), name)
        if other != name:
            problems.append(
                DumpProblem(
                    rules.DUMP_FILE_COLLISION,
                    f"`{other}` and `{name}` would be dumped to one file, `{file_name}`",
                    "rename one of them",
                    card.path,
                )
            )
        if not found:
            files[file_name] = text.encode()
    refuse(problems)
    return write_directory(directory, files)


def _card_text(
    config: AgentConfig,
    card_format: CardFormat,
    directory: Path | None,
    written: JsonObject | None,
    base: Path | None,
) -> tuple[str, list[DumpProblem]]:
    before = config.directory or base
    moved = PathRebase(before, directory or before or Path())
    values, problems = field_values(config, written=written, moved=moved)
    if problems:
        return "", problems
    try:
        text = _text(config, values, card_format)
        return text, [] if written is not None else _value_problems(config, values)
    except UnwritableValueError as error:
        message = f"`{config.name}` holds {error}, which no card can hold"
        return "", [DumpProblem(rules.DUMP_VALUE, message, "replace it", _path(config))]


def _text(config: AgentConfig, values: JsonObject, card_format: CardFormat) -> str:
    body = None
    if card_format == "markdown" and (body := _body(config, values)) is not None:
        values = {name: value for name, value in values.items() if name != "instruction"}
    fields = write_yaml(values)
    return fields if card_format == "yaml" else f"---\n{fields}---\n{body or ''}"


def _body(config: AgentConfig, values: JsonObject) -> str | None:
    """Write the instruction as a body; None if a body would not restore it exactly."""
    instruction = config.instruction
    if not instruction or values.get("instruction") != escape(instruction):
        return None  # there is none, or it holds variables, which a body does not replace
    for body in (f"{instruction}\n", f"---SYSTEM\n{instruction}\n"):
        if _reads_back(body, instruction):
            return body
    return None


def _reads_back(body: str, instruction: str) -> bool:
    if "\r" in body:
        return False
    reading = read_markdown(Source("", f"---\n---\n{body}"), multi_card=True)
    if len(reading.documents) != 1 or reading.diagnostics:
        return False
    document = reading.documents[0]
    findings = DiagnosticCollector(document)
    check_body(document, findings)
    return not findings.errors and document.instruction() == instruction


def _value_problems(config: AgentConfig, values: JsonObject) -> list[DumpProblem]:
    """Find values of an agent made in Python that a card may not have."""
    reading = read_yaml(Source("", write_yaml(values)), multi_card=True)
    found = [*reading.diagnostics]
    for document in reading.documents:
        found += validate_card(document, Origin(config.name), {})[1]
    return [
        DumpProblem(
            rules.DUMP_VALUE,
            f"`{config.name}` could not be loaded again: {one.message}",
            one.hint or "change the value",
        )
        for one in found
        if one.severity == "error"
    ]


def _file_name_problems(name: str, card_format: CardFormat) -> list[DumpProblem]:
    if problems := name_problems(name):
        return problems
    if not name.lower().endswith(SUFFIXES[card_format]):
        what = "Markdown" if card_format == "markdown" else "YAML"
        message = f"`{name}` does not end as a {what} card does"
        hint = f"make it end in {' or '.join(f'`{one}`' for one in SUFFIXES[card_format])}"
        return [DumpProblem(rules.DUMP_FILE_NAME, message, hint)]
    if is_skill(name) or is_configuration(name):
        message = f"`{name}` is never loaded as a card"
        return [DumpProblem(rules.DUMP_FILE_NAME, message, "rename the agent")]
    return []


def _path(config: AgentConfig) -> str:
    return str(config.source or "")


_SURE = ("type", "name")
_DEFAULTS: Mapping[str, object] = {one.name: one.default for one in fields(AgentConfig)}


def field_values(
    config: AgentConfig,
    *,
    written: JsonObject | None,
    moved: PathRebase,
) -> tuple[dict[str, JsonValue], list[DumpProblem]]:
    """Collect what a card must say to make this agent.

    Args:
        config: The agent.
        written: The values of the card it came from as they are written, variables in place;
            None for an agent made in Python.
        moved: How its relative paths change.

    Returns:
        The values by field, in the order of the field table and without those a card need not
        give, and what has no counterpart in a card.
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
                if isinstance(value, list) and isinstance(held, tuple):
                    # What was attached since stands behind what is written.
                    attached = cast("Sequence[object]", held[len(value) :])
                    value += [_escaped(_card_value(item)) for item in attached]
            else:
                value = _escaped(_card_value(held))
            values[field.name] = moved.rewrite(field, value)
        except _NotWritableError as error:
            problems.append(error.problem(config, field.name))
    problems.extend(_foreign(config))
    return values, problems


class PathRebase:
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
                rules.DUMP_PATH,
                f"holds the relative path `{text}`, and its base directory is unknown",
                "use an absolute path",
            )
        try:
            return Path(os.path.relpath(self._before / text, self._after)).as_posix()
        except ValueError:
            raise _NotWritableError(
                rules.DUMP_PATH,
                f"holds the path `{text}`, which is on another drive",
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


def _card_value(held: object) -> JsonValue:
    """Turn a value of `AgentConfig` into what a card holds."""
    if held is None or isinstance(held, str | int | float):
        return held
    if isinstance(held, Mapping):
        mapping = cast("Mapping[str, object]", held)
        return {str(key): _card_value(value) for key, value in mapping.items()}
    if isinstance(held, Sequence):
        return [_card_value(item) for item in cast("Sequence[object]", held)]
    if is_dataclass(held) and not isinstance(held, type):
        given = {one.name: cast("object", getattr(held, one.name)) for one in fields(held)}
        return {name: _card_value(value) for name, value in given.items() if value is not None}
    if callable(held):
        name = getattr(held, "__qualname__", None) or repr(held)
        raise _NotWritableError(
            rules.DUMP_CALLABLE,
            f"holds the function `{name}`, which a card cannot name",
            "put it in a file and write `file.py:name`",
        )
    raise _NotWritableError(
        rules.DUMP_VALUE,
        f"holds a `{type(held).__name__}`, which a card cannot hold",
        "use text, numbers, booleans, lists and mappings",
    )


def _foreign(config: AgentConfig) -> list[DumpProblem]:
    """Find fields that are set and that the agent's type does not have."""
    own = FIELDS_OF[config.type]
    return [
        DumpProblem(
            rules.DUMP_VALUE,
            f"`{name}` of `{config.name}` is set, and a card of type `{config.type}` has no such"
            " field",
            "leave it out",
            str(config.source or ""),
        )
        for name, field in FIELD_NAMED.items()
        if name not in own and field.deprecated is None and getattr(config, name) != _DEFAULTS[name]
    ]


def _spelled(kind: Kind, raw: JsonValue) -> JsonValue:
    """Convert a written value to the form it is dumped in, string by string."""
    if isinstance(kind, ListOf):
        items = raw if is_list(raw) else [raw]
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
    return next(one for one in kind.kinds if isinstance(one, MapOf | Record) == wants_mapping)


def _has_variable(value: JsonValue) -> bool:
    return any(has_variable(text) for text in _texts(value))


def _texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts(item)]
    if is_list(value):
        return [text for item in value for text in _texts(item)]
    return []


def _escaped(value: JsonValue) -> JsonValue:
    return _each_text(value, escape)


def _each_text(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(item, change) for key, item in value.items()}
    if is_list(value):
        return [_each_text(item, change) for item in value]
    return value
