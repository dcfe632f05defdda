from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.text.span import Position, Span
from fast_agent.text.yaml_document import YamlDocument, YamlError, parse_yaml
from fast_agent.text.yaml_nodes import YamlProblem, resolve


def problems(text: str, first_line: int = 1) -> tuple[YamlProblem, ...]:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text, first_line=first_line)
    return caught.value.problems


@pytest.mark.spec("FILE-15")
@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("+1", 1),
        ("-0", 0),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("190:20:30", "190:20:30"),
        ("2026-11-21", "2026-11-21"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("12345678901234567890123", 12345678901234567890123),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_scalars_follow_yaml_1_2(scalar: str, value: object) -> None:
    if scalar:
        assert resolve(scalar) == value
    read = parse_yaml(f"a: {scalar}\n").value
    assert read == {"a": value}
    assert isinstance(read, dict)
    assert type(read["a"]) is type(value)
    flow = parse_yaml(f"{{b: [1], a: {scalar} }}").value
    assert flow == {"b": [1], "a": value}


@pytest.mark.parametrize("text", ["a: .inf", "a: -.INF", "a: .nan", "a: 1e999", "a: " + "9" * 500])
def test_numbers_json_cannot_hold_are_refused(text: str) -> None:
    (problem,) = problems(text)
    assert problem.span.start == Position(1, 4)


def test_merge_keys_are_ordinary_keys() -> None:
    assert parse_yaml("<<: {a: 1}\nb: 2").value == {"<<": {"a": 1}, "b": 2}


@pytest.mark.spec("FILE-17")
@pytest.mark.parametrize(
    ("text", "message", "start"),
    [
        ("a: !x 1", "tag `!x` is not allowed", (1, 4)),
        ("a: !!str 1", "tag `!!str` is not allowed", (1, 4)),
        ("a: ! 1", "tag `!` is not allowed", (1, 4)),
        ("a: &b !x 1", "tag `!x` is not allowed", (1, 7)),
        ("!!python/object:os.system {}", "tag `!!python/object:os.system` is not allowed", (1, 1)),
        ("1: a", "a key must be a string", (1, 1)),
        ("null: a", "a key must be a string", (1, 1)),
        ("a:\n  true: b", "a key must be a string", (2, 3)),
        ("? [a]\n: b", "a key must be a string, not a list or a mapping", (1, 3)),
        ("{a: 1}: b", "a key must be a string, not a list or a mapping", (1, 1)),
        ("a: *b", "not valid YAML: found undefined alias", (1, 4)),
        ("a: 'x\nb: 1\n", "not valid YAML: found unexpected end of stream", (1, 4)),
        ("a: b: c", "not valid YAML: mapping values are not allowed", (1, 5)),
        ("a: 1\n---\nb: 2", "not valid YAML: but found another document", (2, 1)),
        ("a: b\x07", "control character U+0007 is not allowed", (1, 5)),
        ("a: b\rc", "control character U+000D is not allowed", (1, 5)),
    ],
)
def test_what_cannot_be_read_is_placed(text: str, message: str, start: tuple[int, int]) -> None:
    problem = problems(text)[0]
    assert problem.message.startswith(message)
    assert problem.span.start == Position(*start)


@pytest.mark.spec("FILE-16")
def test_a_duplicate_key_names_the_first() -> None:
    found = problems("a: 1\nb:\n  c: 1\n  'c': 2\na: 3\n", first_line=10)
    assert [problem.kind for problem in found] == ["duplicate-key"] * 2
    assert [problem.span for problem in found] == [Span.at(13, 3, 3), Span.at(14, 1)]
    assert [problem.first for problem in found] == [Span.at(12, 3), Span.at(10, 1)]
    assert "first is on line 12" in found[0].message


def test_duplicates_do_not_hide_the_rest() -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: 1\na: 2\nb: !x 3\n")
    assert [problem.kind for problem in caught.value.problems] == ["duplicate-key", "syntax"]
    assert caught.value.document is not None
    assert caught.value.document.value == {"a": 1, "b": "3"} | {"b": 3}


@pytest.mark.spec("FILE-17")
def test_aliases_are_bounded() -> None:
    assert parse_yaml("a: &x [1]\nb: *x").value == {"a": [1], "b": [1]}
    laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    started = time.process_time()
    (problem,) = problems(laughs)
    assert "grow by more than" in problem.message
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "a: " + "[" * 70 + "]" * 70,
        "{a: " * 70 + "1" + "}" * 70,
        "- " * 70 + "a",
        "".join(" " * depth + "a:\n" for depth in range(70)),
        "a: &a [*a]",
    ],
)
def test_nesting_is_bounded(text: str) -> None:
    assert problems(text)[0].message == "nested deeper than 64 levels"


def test_deep_but_allowed() -> None:
    value: object = parse_yaml("a: " + "[" * 60 + "]" * 60).value
    assert isinstance(value, dict)


def test_many_brackets_side_by_side_are_fine() -> None:
    assert parse_yaml("a:\n" + "- [1]\n" * 200).value == {"a": [[1]] * 200}


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029", "\ufeff"])
def test_foreign_line_ends_are_text(char: str) -> None:
    document = parse_yaml(f'a: x{char}y\nb: "{char}"\nc: |\n  1{char}2\n')
    assert document.value == {"a": f"x{char}y", "b": char, "c": f"1{char}2\n"}
    assert document.span_of(("b",)) == Span.at(2, 4, 3)


DOCUMENT = """\
name: x
servers:
  - time
  - 'git hub'
tools: {time: [a, "b c"], other: []}
text: |
  one
  two

last: 3
"""


@pytest.mark.parametrize(
    ("path", "key", "span", "written"),
    [
        (("name",), True, Span.at(1, 1, 4), "x"),
        (("name",), False, Span.at(1, 7), "x"),
        (("servers", 1), False, Span.at(4, 5, 9), "'git hub'"),
        (("tools", "time", 1), False, Span.at(5, 19, 5), '"b c"'),
        (("tools", "other"), True, Span.at(5, 27, 5), "[]"),
        (("servers", 7), False, Span(Position(3, 3), Position(4, 14)), "- time\n  - 'git hub'"),
        (("name", "deeper"), False, Span.at(1, 7), "x"),
        (("text",), False, Span(Position(6, 7), Position(8, 6)), "|\n  one\n  two"),
        (("last",), False, Span.at(10, 7), "3"),
    ],
)
def test_places(path: tuple[str | int, ...], key: bool, span: Span, written: str) -> None:
    document = parse_yaml(DOCUMENT)
    assert document.span_of(path, key=key) == span
    assert document.written(path) == written


def test_places_count_from_the_line_the_text_begins_at() -> None:
    document = parse_yaml("a: 1\nb: 2\n", first_line=5)
    assert document.span_of(("b",)) == Span.at(6, 4)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\n\n"])
def test_nothing_is_none(text: str) -> None:
    assert parse_yaml(text).value is None


# Without the characters YAML wants escaped and JSON does not.
TEXTS = st.text(
    st.characters(exclude_categories=("Cs",)).filter(
        lambda char: not ("\x7f" <= char <= "\x9f" or char in "\ufffe\uffff")
    ),
    max_size=5,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_json_is_yaml(value: object) -> None:
    import json

    assert parse_yaml(json.dumps(value, ensure_ascii=False)).value == value


def test_ordinary_text_never_imports_pyyaml() -> None:
    code = (
        "import sys; from fast_agent.text.yaml_document import parse_yaml;"
        "parse_yaml('type: agent\\nname: a\\nservers: [time]\\n'); assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_document_can_be_made_without_places() -> None:
    assert YamlDocument("a: 1\n", 3, {"a": 1}).span_of(("a",)) == Span.at(3, 4)
