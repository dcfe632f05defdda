from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards.fix import apply_fixes
from fast_agent.resources.skill.frontmatter import (
    as_name,
    is_name,
    plain_fields,
    read_head,
    read_thoroughly,
)
from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    from pathlib import Path

FINE = "---\nname: a-skill\ndescription: Does it.\n---\nbody\n"


def codes(text: str | bytes) -> list[tuple[str, int | None]]:
    data = text if isinstance(text, bytes) else text.encode()
    return [
        (one.code, one.span.start.line if one.span else None)
        for one in read_head(data, "SKILL.md", None).problems
    ]


def test_a_fine_head() -> None:
    head = read_head(FINE.encode(), "SKILL.md", None)
    assert head.frontmatter == {"name": "a-skill", "description": "Does it."}
    assert (head.name, head.description, head.valid) == ("a-skill", "Does it.", True)
    assert (head.problems, head.size, head.name_line) == ((), len(FINE), 2)


@pytest.mark.parametrize(
    "data",
    [
        FINE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + FINE.encode(),
        FINE.replace("a-skill", "'a-skill'").encode(),
        FINE.replace("a-skill", "a-skill # a comment").encode(),
        FINE.removesuffix("body\n").removesuffix("\n").encode(),
    ],
)
def test_ways_to_write_the_same(data: bytes) -> None:
    head = read_head(data, "SKILL.md", None)
    assert head.frontmatter == {"name": "a-skill", "description": "Does it."}
    assert head.valid


@pytest.mark.parametrize("name", ["a", "a1", "1", "a-b-c", "x" * 64])
def test_names(name: str) -> None:
    assert is_name(name)
    assert as_name(name) == name


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("", ""),
        ("A", "a"),
        ("a_b", "a-b"),
        ("-a", "a"),
        ("a-", "a"),
        ("a--b", "a-b"),
        ("é", ""),
        ("\uff41", ""),
        ("a\n", "a"),
        ("x" * 65, "x" * 64),
        ("../a", "a"),
    ],
)
def test_what_is_no_name(name: str, better: str) -> None:
    assert not is_name(name)
    assert as_name(name) == better


@pytest.mark.spec("SEED-SKILL-17")
@pytest.mark.parametrize(
    "extra",
    [
        "a: !!python/object/apply:os.system [id]",
        "a: !include /etc/passwd",
        "? [a]\n: b",
        "1: a",
        "name: again",
        "a: .nan",
        "a: 1e999",
        "a: " + "9" * 500,
        "a: " + "[" * 100,
        "a: &a [z,z,z,z,z,z,z,z,z]\n"
        + "\n".join(
            f"{this}: &{this} [{','.join(['*' + last] * 9)}]"
            for last, this in zip("abcdefg", "bcdefgh", strict=True)
        ),
        "a: \x07",
        "a: b: c",
        "\ta: b",
    ],
)
def test_yaml_that_runs_or_floods_is_refused(extra: str) -> None:
    head = read_head(f"---\nname: a-skill\ndescription: x\n{extra}\n---\n".encode(), "S", None)
    assert not head.valid
    assert {one.code for one in head.problems} <= {"FA752", "FA756"}
    assert "FA752" in {one.code for one in head.problems}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("license: 1", "FA755"),
        ("license: [a]", "FA755"),
        ("compatibility: ''", "FA755"),
        (f"compatibility: {'x' * 501}", "FA755"),
        ("metadata: text", "FA755"),
        ("metadata: {a: null}", "FA755"),
        ("metadata: {a: {b: c}}", "FA755"),
        ("allowed-tools: 1", "FA755"),
        ("allowed-tools: [1]", "FA755"),
        ("allowed-tools: [Read]", "FA757"),
        ("metadata: {a: 1}", "FA757"),
        ("metadata: {a: true}", "FA757"),
        ("user-invokable: true", "FA756"),
    ],
)
def test_fields_that_may_be_left_out(fields: str, code: str) -> None:
    text = f"---\nname: a-skill\ndescription: x\n{fields}\n---\n"
    assert codes(text) == [(code, 4)]
    assert read_head(text.encode(), "S", None).valid == (code != "FA755")


def test_each_problem_is_named_with_its_place_and_a_way_out() -> None:
    text = "---\nname: My Skill\ndescription: ''\nlicence: MIT\nmetadata: []\n---\n"
    head = read_head(text.encode(), "S", None)
    assert codes(text) == [("FA753", 2), ("FA754", 3), ("FA755", 5), ("FA756", 4)]
    assert all(one.hint and one.source_line for one in head.problems)
    assert [one.fix.replacement for one in head.problems if one.fix] == ["my-skill", "license"]
    assert (head.name, head.description) == ("My Skill", None)


def test_a_description_may_have_1024_characters() -> None:
    assert codes(f"---\nname: a\ndescription: {'é' * 1024}\n---\n") == []
    assert codes(f"---\nname: a\ndescription: {'é' * 1025}\n---\n") == [("FA754", 3)]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_a_problem(data: bytes) -> None:
    for text in (data, b"---\n" + data + b"\n---\n", b"---\nname: a\ndescription: b\n" + data):
        head = read_head(text, "S", None)
        assert head.valid or head.problems
        assert head.size == len(text)
        assert json.loads(encode(head.frontmatter)) == head.frontmatter


@given(
    st.dictionaries(
        st.sampled_from(
            ["name", "description", "license", "compatibility", "metadata", "x", "hooks"]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
            ),
            max_leaves=5,
        ),
    )
)
def test_any_fields_are_judged(fields: dict[str, object]) -> None:
    text = f"---\n{json.dumps(fields)}\n---\n"
    head = read_head(text.encode(), "S", None)
    assert head.valid or head.problems
    if head.valid:
        assert head.frontmatter == fields
        assert is_name(head.name or "")


PIECES = st.sampled_from(
    [
        "name: a-skill\n",
        "description: Does it. Use it when (and only when) asked!\n",
        "description: \"Quoted: with # and 'signs'\"\n",
        "description: 'Single \"quoted\": text'\n",
        "license: MIT\n",
        "license: null\n",
        "license: True\n",
        "true: text\n",
        "metadata:\n",
        "metadata: text\n",
        "  author: someone\n",
        '  version: "1.0"\n',
        "  version: 1.0\n",
        "  Null: x\n",
        "  no: yes\n",
        "   deeper: text\n",
        "compatibility: Needs  two  spaces\n",
        "compatibility: ends in a blank \n",
        "allowed-tools: Read Bash(git:*)\n",
        "allowed-tools: a {b} [c] *d &e !f |g >h\n",
        "a: x # comment\n",
        "a: x: y\n",
        "a: 'it''s'\n",
        'a: "\\n"\n',
        "a: é\n",
        "a:\n",
        "a: \n",
        "\n",
        "# comment\n",
        "...\n",
    ]
)


@given(st.lists(PIECES, max_size=6), st.sampled_from(["", "body\n", "é", "---\n", "\0", "\x1b"]))
def test_the_quick_way_reads_what_the_thorough_way_reads(pieces: list[str], body: str) -> None:
    data = f"---\n{''.join(pieces)}---\n{body}".encode()
    quick = plain_fields(data)
    if quick is not None:
        assert read_thoroughly(data, "S", None).frontmatter == quick
    head = read_head(data, "S", None)
    assert head == read_thoroughly(data, "S", None)


def test_most_heads_are_read_the_quick_way() -> None:
    fields = 'license: MIT\nmetadata:\n  author: someone\n  version: "1.0"\n'
    text = f"---\nname: a-skill\ndescription: Does it (well), at 100%.\n{fields}---\n# Text\n"
    assert plain_fields(text.encode()) == {
        "name": "a-skill",
        "description": "Does it (well), at 100%.",
        "license": "MIT",
        "metadata": {"author": "someone", "version": "1.0"},
    }


@pytest.mark.spec("SKILLS-4")
@pytest.mark.parametrize(
    "value", ["Use when: it's asked.", "Reviews C# and more: all of it", "Notes:"]
)
def test_a_description_with_a_colon_is_read_as_text_and_can_be_fixed(
    tmp_path: Path, value: str
) -> None:
    text = f"---\nname: a-skill\ndescription: {value}\n---\nDo it.\n"
    head = read_head(text.encode(), "S", None)
    assert (head.valid, head.description) == (True, value)
    file = tmp_path / "SKILL.md"
    file.write_text(text)
    (problem,) = read_head(text.encode(), str(file), None).problems
    assert (problem.code, problem.severity) == ("FA757", "warning")
    assert apply_fixes([problem]).changed == (str(file),)
    fixed = read_head(file.read_bytes(), "S", None)
    assert (fixed.problems, fixed.description) == ((), value)
