"""What a batch returns: one row per item, in the order of the input."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from fast_agent.engine.batch_input import parquet
from fast_agent.errors import RunError, os_reason
from fast_agent.text.safe_file import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fast_agent.engine.batch_input import Item
    from fast_agent.engine.run_store import RunStore
    from fast_agent.steps.parts import StepRedactor
    from fast_agent.text.json_value import JsonValue

_NOT_RUN: Final = {"kind": "NotRun", "message": "it was not run: the batch stopped before it"}


def rows(
    items: Iterable[Item], store: RunStore, redactor: StepRedactor, *, include_input: bool
) -> Iterator[dict[str, JsonValue]]:
    """Return the row of each item: its result, its error, or that it was not run."""
    by_key = {run.key: run for run in store.runs()}
    for item in items:
        run = by_key.get(item.key)
        row: dict[str, JsonValue] = {"id": item.id}
        if include_input:
            row["input"] = item.value
        row["ok"] = run is not None and run.state == "done"
        if run is not None and run.state == "done":
            row["output"] = redactor.restored(json.loads(run.output or "null"))
        elif run is not None and run.state == "cancelled":
            row["error"] = {"kind": "Cancelled", "message": "it was cancelled"}
        elif run is not None and run.state == "failed":
            row["error"] = json.loads(run.error or "null")
        else:
            row["error"] = dict(_NOT_RUN)
        if run is not None and run.used is not None:
            row["usage"] = json.loads(run.used)
            row["cost"] = run.cost
        if run is not None:
            row["run"] = run.id
        yield row


def write_rows(path: Path, found: Iterable[dict[str, JsonValue]]) -> None:
    """Write rows to a file at once: it holds all of them, or what it held before.

    Args:
        path: The file; its ending says its form.
        found: The rows.

    Raises:
        RunError: It cannot be written.
    """
    try:
        match path.suffix.lower():
            case ".csv":
                write_atomic(path, _csv(list(found)).encode(errors="replace"))
            case ".parquet":
                _write_parquet(path, [_flat(row) for row in found])
            case _:
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in found)
                write_atomic(path, "".join(lines).encode(errors="replace"))
    except OSError as error:
        raise RunError(f"`{path}` cannot be written: {os_reason(error)}") from error


def _flat(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a row for a table: the contents of objects as separate columns, or as JSON."""
    flat: dict[str, JsonValue] = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and name in {"usage", "error"}:
            flat.update({f"{name}_{key}": inner for key, inner in value.items()})
        elif isinstance(value, Mapping) and name == "input":
            flat.update({f"input_{key}": _cell(inner) for key, inner in value.items()})
        else:
            flat[name] = _cell(value)
    return flat


def _cell(value: JsonValue) -> JsonValue:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return json.dumps(value, ensure_ascii=False)


def _csv(found: list[dict[str, JsonValue]]) -> str:
    flat = [_flat(row) for row in found]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    for row in flat:
        cells = {name: str(value).lower() if isinstance(value, bool) else value
                 for name, value in row.items()}  # fmt: skip
        writer.writerow(cells)
    return text.getvalue()


def _of_one_type(column: list[JsonValue]) -> list[JsonValue]:
    """Return a column as a table takes it: values of several types as JSON."""
    kinds = {type(value) for value in column if value is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return column
    return [value if isinstance(value, str | None) else json.dumps(value) for value in column]


def _write_parquet(path: Path, flat: list[dict[str, JsonValue]]) -> None:
    library = parquet()
    names = list(dict.fromkeys(name for row in flat for name in row))
    columns = {name: _of_one_type([row.get(name) for row in flat]) for name in names}
    beside = path.with_name(f".{path.name}.new")
    try:
        table = import_module("pyarrow").table
        library.write_table(table(columns), beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
