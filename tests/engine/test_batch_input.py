"""Items of a batch as their file gives them."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.engine.batch_input import read_items
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject, JsonValue

SCHEMA: JsonObject = {
    "properties": {
        "text": {"type": "string"},
        "stars": {"type": "integer"},
        "price": {"type": "number"},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {"type": "object"},
        "rank": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "part": {"type": ["integer", "string"]},
        "open": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/name"}]},
        "any": {},
    },
    "$defs": {"name": {"type": "string"}},
}


def config(**more: JsonValue) -> AgentConfig:
    return AgentConfig(name="a", tool_input_schema={**SCHEMA, **more})


def messages(path: Path, text: str, agent: AgentConfig, id_field: str | None = None) -> list[str]:
    path.write_text(text, "utf-8")
    return [item.message for item in read_items(path, agent, id_field)]


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        ("text", "5", "5"),
        ("text", "", ""),
        ("text", " a ", " a "),
        ("stars", "5", 5),
        ("stars", " -5 ", -5),
        ("stars", "5.0", 5.0),
        ("price", "5", 5),
        ("price", "1.5e3", 1500.0),
        ("paid", "true", True),
        ("paid", "FALSE", False),
        ("tags", '["a","b"]', ["a", "b"]),
        ("more", '{"a": 1}', {"a": 1}),
        ("rank", "3", 3),
        ("rank", "", None),
        ("rank", "null", None),
        ("part", "7", "7"),
        ("open", "7", "7"),
        ("any", "7", "7"),
        ("unknown", "7", "7"),
    ],
)
def test_a_cell_is_read_as_its_schema_asks(
    tmp_path: Path, name: str, cell: str, value: JsonValue
) -> None:
    quoted = cell.replace('"', '""')
    (message,) = messages(tmp_path / "in.csv", f'{name},_\n"{quoted}",_\n', config())
    read = json.loads(message)[name]
    assert (read, type(read)) == (value, type(value))


def test_an_empty_cell_that_may_not_be_a_text_is_left_out(tmp_path: Path) -> None:
    (message,) = messages(tmp_path / "in.csv", "text,stars,tags\nhi,, \n", config())
    assert json.loads(message) == {"text": "hi"}


@pytest.mark.parametrize(
    ("name", "cell", "problem"),
    [
        ("stars", "five", "$.stars: 'five' is not of type 'integer'"),
        ("stars", "007", "$.stars: '007' is not of type 'integer'"),
        ("stars", "1.5", "$.stars: 1.5 is not of type 'integer'"),
        ("price", "NaN", "$.price: 'NaN' is not of type 'number'"),
        ("price", "TRUE", "$.price: 'TRUE' is not of type 'number'"),
        ("paid", "yes", "$.paid: 'yes' is not of type 'boolean'"),
        ("stars", "", "$: 'stars' is a required property"),
    ],
)
def test_a_cell_that_is_not_what_its_schema_asks_is_reported(
    tmp_path: Path, name: str, cell: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        messages(tmp_path / "in.csv", f"{name},_\n{cell},_\n", config(required=[name]))
    assert f"\nline 2: {problem}" in caught.value.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_csv_file_is_read_as_spreadsheets_write_it(
    tmp_path: Path, encoding: str, delimiter: str, line_end: str
) -> None:
    path = tmp_path / "in.csv"
    rows = [["no", "message"], ["1", "é; a, b\tc"], ["2", "two\nlines"]]
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=line_end).writerows(rows)
    assert [[item.id, item.message] for item in read_items(path, config(), "no")] == rows[1:]


def test_columns_without_a_name_are_no_error(tmp_path: Path) -> None:
    assert messages(tmp_path / "in.csv", "message,,\nhi,,\n", config()) == ["hi"]


def test_a_cell_may_hold_a_document(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    document = "x" * (2 * limit)
    assert messages(tmp_path / "in.csv", f"message\n{document}\n", config()) == [document]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"message\n\xe9\n", "it is not UTF-8 text"),
        (b"\xff\xfea", "it is not UTF-8 text"),
        (b"a,message,a\n1,2,3\n", "its header names `a` twice"),
        (b'message\n"open\n', "unexpected end of data"),
    ],
)
def test_a_csv_file_that_cannot_be_read(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=reason):
        read_items(path, config())


def test_only_cells_are_converted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'5' is not of type 'integer'"):
        messages(tmp_path / "in.jsonl", '{"stars": "5"}\n', config())


def test_the_item_and_its_id_stay_as_the_file_has_them(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("no,stars\n007,5\n", "utf-8")
    (item,) = read_items(path, config(additionalProperties=False), "no")
    assert (item.key, item.id) == ("id:007", "007")
    assert item.value == {"no": "007", "stars": "5"}
    assert json.loads(item.message) == {"stars": 5}
