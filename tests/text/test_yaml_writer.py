from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import pytest
import yaml
import yaml12
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fast_agent.text.yaml_writer import UnwritableValueError, write_scalar, write_yaml

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

AWKWARD = [
    *("yes", "No", "on", "off", "null", "Null", "~", "true", "False", "y", "", " ", "\n", "\t"),
    *("1", "-1", "1e3", "0o7", "0x1f", "1_000", "12:30", ".5", ".inf", "-.Inf", ".nan", "1.", "+1"),
    *("2026-11-21", "=", "<<", "-", "- a", "?", "? a", ":", ": a", "a:", "a: b", "a:b", "a #b"),
    *("#a", "a#b", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a`", "'a'", '"a"', "[a]", "{a}"),
    *(
        "a, b",
        "---",
        "...",
        "--- a",
        "./a.md",
        "../a b.md",
        "/a",
        "https://e.com/a?b=c&d",
        "f.py:g",
    ),
    *(" a", "a ", "a\n", "\na", "a\n\n", "a\nb", "a\nb\n", "a\n\nb", "a\n b", " a\nb", "a\n \nb"),
    *("a\n\tb", "\ta\nb", "a\nb ", "a \nb", "a\r\nb", "a\rb", "a\x85b", "a\u2028b", "\ufeffa"),
    *("a\ufeff", "\x00", "\x07", "\x1b[0m", "\x7f", "\x9f", "\ufffe", "\uffff", "😀", "漢字", "é"),
    *("---\na\n---", "a\n---\nb", "a\n...\nb", "a\n# b\nc", "${HOME}", "{{agents}}", "a\\b", "\\"),
    *(
        "x" * 2000,
        "-0",
        "0777",
        "a\n" + "b" * 3000,
        "a\u0301",
        "\uff59\uff45\uff53",
        "\u00a0a",
        "a\u3000",
    ),
]

texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(st.sampled_from(list("ab:#- \n\t'\"|>,[]{}&*!%@`?~.01e\\\r")), max_size=12),
)
scalars: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts
)
values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, max_size=5))
@settings(max_examples=400)
def test_two_readers_give_the_value_back(value: dict[str, JsonValue]) -> None:
    text = write_yaml(value)
    assert yaml12.parse_yaml(text) == value
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_texts_everywhere(text: str) -> None:
    value = {"a": text, text or "k": [text, [text]], "z": {"deep": text}}
    written = write_yaml(value)
    assert yaml12.parse_yaml(written) == value
    assert yaml.safe_load(written) == value
    scalar = write_scalar(text)
    assert "\n" not in scalar
    assert yaml.safe_load(f"[a, {scalar}, b]") == ["a", text, "b"]
    assert yaml12.parse_yaml(f"[a, {scalar}, b]") == ["a", text, "b"]
    assert yaml12.parse_yaml(f"a: {scalar} # end") == {"a": text}


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e22)
@example(1e-05)
@example(-0.0)
def test_decimals_keep_their_value(number: float) -> None:
    back = cast("dict[str, object]", yaml12.parse_yaml(write_yaml({"a": number})))["a"]
    assert isinstance(back, float)
    assert (back, math.copysign(1, back)) == (number, math.copysign(1, number))


def test_what_cannot_be_written() -> None:
    for value in (math.inf, math.nan, "\ud800", "a\n\udfffb"):
        with pytest.raises(UnwritableValueError):
            write_yaml({"a": value})


def test_the_text_reads_well() -> None:
    value: dict[str, JsonValue] = {
        "type": "agent",
        "description": "Formats code, nicely (and fast).",
        "servers": ["time", "file system"],
        "tools": {"time": ["get_time", "*"]},
        "skills": [],
        "function_tools": ["tools.py:add"],
        "temperature": 0.5,
        "instruction": "First line.\n\n  indented\nlast",
    }
    assert write_yaml(value) == (
        "type: agent\n"
        "description: Formats code, nicely (and fast).\n"
        "servers: [time, file system]\n"
        "tools:\n"
        "  time:\n"
        "    - get_time\n"
        '    - "*"\n'
        "skills: []\n"
        "function_tools:\n"
        "  - tools.py:add\n"
        "temperature: 0.5\n"
        "instruction: |-\n"
        "  First line.\n"
        "\n"
        "    indented\n"
        "  last\n"
    )
    assert write_yaml({}) == "{}\n"
