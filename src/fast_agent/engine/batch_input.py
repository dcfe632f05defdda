"""What a batch is given: one item a line, from JSON Lines, CSV or Parquet."""

from __future__ import annotations

import csv
import json
import random
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, cast

from fast_agent.agents.output import JsonSchema
from fast_agent.errors import ConfigError, os_reason
from fast_agent.messages.json_text import JsonTextError, parse_json
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.text.json_value import JsonObject, JsonValue

FORMS: Final = (".jsonl", ".ndjson", ".csv", ".parquet")
"""The endings of files a batch reads and writes."""

_MAX_SHOWN: Final = 10
_MAX_CELL: Final = 64 << 20


@frozen
class Item:
    """One item of a batch.

    Args:
        line: Its line or row in the file, from 1.
        key: What it is known by: its id, else a digest of it.
        id: The value of its id field, or its line.
        value: The item as it stands in the file.
        message: What is sent to the agent.
    """

    line: int
    key: str
    id: JsonValue
    value: JsonValue
    message: str


@frozen
class Selection:
    """Which items of a file are taken.

    Args:
        offset: How many are skipped at the start.
        limit: Most that are taken, or None.
        sample: How many are chosen by chance, in their order; None takes all.
        seed: Seed of the random choice.
    """

    offset: int = 0
    limit: int | None = None
    sample: int | None = None
    seed: int = 0

    def of(self, items: list[Item]) -> list[Item]:
        """Choose among items."""
        items = items[self.offset :]
        if self.sample is not None and self.sample < len(items):
            chance = random.Random(self.seed)  # noqa: S311 (a sample, not a secret)
            items = [items[at] for at in sorted(chance.sample(range(len(items)), self.sample))]
        return items if self.limit is None else items[: self.limit]


def read_items(path: Path, config: AgentConfig, id_field: str | None = None) -> list[Item]:
    """Read the items of a file.

    Args:
        path: The file; its ending says its form.
        config: The agent: its `tool_input_schema` says what objects without `message` must be.
        id_field: The field that names an item; None names it by what it is.

    Raises:
        ConfigError: The file cannot be read, or some items cannot be used; with every line.
    """
    problems: list[str] = []
    items: list[Item] = []
    seen: dict[str, list[int]] = {}
    schema = _schema_of(config)
    cells = _Cells(config.tool_input_schema if path.suffix.lower() == ".csv" else None)
    for line, value, fault in _values(path):
        item, problem = (None, fault)
        if fault is None:
            item, problem = _item(line, value, id_field, schema, cells, config.name)
        if item is not None:
            lines = seen.setdefault(item.key, [])
            lines.append(line)
            if len(lines) > 1 and id_field is not None:
                problem = f"its id `{item.id}` is also that of line {lines[0]}"
            elif len(lines) > 1:  # the same text twice is two items: each gets a row
                item = replace(item, key=f"{item.key}#{len(lines)}")
        if problem is not None:
            problems.append(f"line {line}: {problem}")
        elif item is not None:
            items.append(item)
    if problems:
        shown = "\n".join(problems[:_MAX_SHOWN])
        more = f"\nand {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
        raise ConfigError(
            f"{len(problems)} of {len(items) + len(problems)} items of `{path}` cannot be used;"
            f" nothing was run\n{shown}{more}",
            hint="an item is a string, an object with `message`, or the arguments of the agent's"
            " `tool_input_schema`",
        )
    return items


class _Cells:
    """Reads the cells of a CSV file, which are all text, as the values a schema asks for.

    Args:
        schema: The schema of a row; None leaves all values as they are.
    """

    def __init__(self, schema: JsonObject | None) -> None:
        fields = (schema or {}).get("properties")
        self._kinds = (
            {name: _kinds(field) for name, field in fields.items()}
            if isinstance(fields, Mapping)
            else {}
        )

    def read(self, row: JsonObject) -> JsonObject:
        """Return the values of a row; an empty cell that may not be a text is left out, or null."""
        read: dict[str, JsonValue] = {}
        for name, cell in row.items():
            kinds = self._kinds.get(name, frozenset())
            if not kinds or "string" in kinds or not isinstance(cell, str):
                read[name] = cell
            elif cell.strip():
                read[name] = _value_of(cell.strip(), kinds)
            elif "null" in kinds:
                read[name] = None
        return read


def _kinds(field: JsonValue) -> frozenset[str]:
    """Return the types a field may have; empty where its schema does not say."""
    if not isinstance(field, Mapping):
        return frozenset()
    kinds = field.get("type")
    if isinstance(kinds, str):
        return frozenset({kinds})
    if isinstance(kinds, Sequence):
        return frozenset(kind for kind in kinds if isinstance(kind, str))
    ways = field.get("anyOf", field.get("oneOf"))
    if isinstance(ways, str) or not isinstance(ways, Sequence):
        return frozenset()
    each = [_kinds(way) for way in ways]
    return frozenset(kind for kinds in each for kind in kinds) if all(each) else frozenset()


def _value_of(cell: str, kinds: frozenset[str]) -> JsonValue:
    text = cell.lower() if "boolean" in kinds and cell.lower() in {"true", "false"} else cell
    try:
        return parse_json(text)
    except JsonTextError:
        return cell  # the schema reports it


def _schema_of(config: AgentConfig) -> JsonSchema | None:
    own = config.tool_input_schema
    if own is None:
        return None
    where = f"`tool_input_schema` of agent `{config.name}`"
    return JsonSchema({"type": "object", **own}, where)


def _item(
    line: int,
    value: JsonValue,
    id_field: str | None,
    schema: JsonSchema | None,
    cells: _Cells,
    agent: str,
) -> tuple[Item | None, str | None]:
    """Make an item of a value; else say what is wrong with it."""
    name: JsonValue = line
    if id_field is not None:
        if not isinstance(value, Mapping) or value.get(id_field) in (None, ""):
            return None, f"it has no `{id_field}`"
        name = value[id_field]
    message, problem = _message(value, id_field, schema, cells, agent)
    if problem is not None:
        return None, problem
    if id_field is None:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        key = sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]
    else:
        key = f"id:{name}"
    return Item(line, key, name, value, message), None


def _message(
    value: JsonValue, id_field: str | None, schema: JsonSchema | None, cells: _Cells, agent: str
) -> tuple[str, str | None]:
    if isinstance(value, str):
        return value, None if value.strip() else "it is empty"
    if not isinstance(value, Mapping):
        return "", "it is neither a string nor an object"
    message = value.get("message")
    if isinstance(message, str):
        return message, None if message.strip() else "its `message` is empty"
    if schema is None:
        return "", f"it has no `message`, and agent `{agent}` has no `tool_input_schema`"
    given = cells.read(value)
    arguments = {key: inner for key, inner in given.items() if key != id_field}
    if schema.problems(arguments) is not None:
        arguments = dict(given)
    problem = schema.problems(arguments)
    return json.dumps(arguments, ensure_ascii=False), problem


def _values(path: Path) -> Iterator[tuple[int, JsonValue, str | None]]:
    """Read the values of a file, each with its line and what is wrong with it."""
    try:
        match path.suffix.lower():
            case ".jsonl" | ".ndjson":
                with path.open("rb") as file:
                    yield from _json_lines(file)
            case ".csv":
                yield from _csv_rows(path)
            case ".parquet":
                for number, row in enumerate(_parquet_rows(path), 1):
                    yield number, row, None
            case ending:
                raise ConfigError(
                    f"`{path}` is not a batch file: its extension is `{ending}`",
                    hint=f"use one of {', '.join(FORMS)}",
                )
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {os_reason(error)}") from error
    except csv.Error as error:
        raise ConfigError(f"`{path}` cannot be read: {error}") from error
    except UnicodeError as error:
        raise ConfigError(
            f"`{path}` cannot be read: it is not UTF-8 text", hint="save it as UTF-8"
        ) from error


def _csv_rows(path: Path) -> Iterator[tuple[int, JsonValue, str | None]]:
    """Read the rows of a CSV file, as spreadsheets of all countries write it."""
    with path.open("rb") as file:
        is_utf_16 = file.read(2) in {BOM_UTF16_LE, BOM_UTF16_BE}
    with path.open(encoding="utf-16" if is_utf_16 else "utf-8-sig", newline="") as text:
        head = text.readline()
        text.seek(0)
        delimiter = "," if "," in head else ";" if ";" in head else "\t"
        former = csv.field_size_limit(_MAX_CELL)
        try:
            reader = csv.DictReader(text, delimiter=delimiter, strict=True)
            names = reader.fieldnames or ()
            for name, count in Counter(names).items():
                # Columns without a name are left over at the edge of a sheet.
                if name and count > 1:
                    raise csv.Error(f"its header names `{name}` twice")
            for row in reader:
                yield reader.line_num, cast("JsonValue", row), _torn(row)
        finally:
            csv.field_size_limit(former)


def _torn(row: Mapping[str | None, object]) -> str | None:
    if None in row:
        return "it has more values than the header has names"
    if any(value is None for value in row.values()):
        return "it has fewer values than the header has names"
    return None


def _json_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, JsonValue, str | None]]:
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").strip()
        if not text:
            continue
        try:
            yield number, json.loads(text), None
        except (ValueError, RecursionError) as error:
            yield number, None, f"it is not JSON: {error}"


def _parquet_rows(path: Path) -> Iterator[JsonValue]:
    try:
        rows = parquet().read_table(path).to_pylist()
    except ValueError as error:  # that of a file which is none is one
        reason = str(error).splitlines()[0]
        raise ConfigError(f"`{path}` cannot be read: it is not Parquet: {reason}") from error
    for row in rows:
        # Times, decimals and bytes are written as texts.
        yield json.loads(json.dumps(row, default=_text))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.isoformat() if isinstance(value, date | time) else str(value)


class _Table(Protocol):
    def to_pylist(self) -> list[dict[str, object]]: ...


class ParquetLibrary(Protocol):
    """What is used of `pyarrow.parquet`."""

    def read_table(self, source: Path, /) -> _Table:
        """Read a file."""
        ...

    def write_table(self, table: object, where: Path, /) -> None:
        """Write a file."""
        ...


def parquet() -> ParquetLibrary:
    """Import what reads and writes Parquet.

    Raises:
        ConfigError: It is not installed.
    """
    from importlib import import_module

    try:
        return cast("ParquetLibrary", import_module("pyarrow.parquet"))
    except ImportError as error:
        raise ConfigError(
            "Parquet files need the extra `parquet`",
            hint="install it: `pip install 'fast-agent[parquet]'`, or use JSON Lines or CSV",
        ) from error
