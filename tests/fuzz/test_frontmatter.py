"""Any bytes at all are the head of a skill, or a problem with a place."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.skill.frontmatter import read_head, read_thoroughly

LINES = st.sampled_from(
    [
        "---",
        "--- ",
        "...",
        "name: sound",
        "name: 'so''und'",
        'name: "\\u0000"',
        "name: [a",
        "name: &a b",
        "name: *a",
        "description: Does it.",
        "description: |",
        "description: >-",
        "  folded",
        "\tindented",
        "description: a: b",
        "description: 2026-11-21",
        "description: .inf",
        "description: 0x1F",
        "description: !!python/name:os.system",
        "description: !!binary aGk=",
        "metadata:",
        "  a: b",
        "  ? [x]",
        "  : y",
        "  <<: *a",
        "- a",
        "license: Apache-2.0 # so",
        "allowed-tools: Bash(*)",
        "%YAML 1.2",
        "",
        "# comment",
        "\ufeff---",
        "{a: [",
        "'",
        "? ",
        "name: \u202ex\U000e0041",
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x85", ""])
WRITTEN = st.lists(st.tuples(LINES | st.text(max_size=8), ENDS), max_size=14).map(
    lambda lines: "".join(line + end for line, end in lines).encode("utf-8", "surrogatepass")
)
DATA = st.one_of(WRITTEN, WRITTEN.map(b"---\nname: a\n".__add__), st.binary(max_size=60))


@given(DATA)
def test_a_head_is_json_or_a_problem(data: bytes) -> None:
    head = read_head(data, "a/SKILL.md", None)
    assert head.size == len(data)
    if head.frontmatter is not None:
        text = json.dumps(head.frontmatter, allow_nan=False)
        assert json.loads(text) == head.frontmatter
    if head.valid:
        assert head.frontmatter is not None
        assert head.name == head.frontmatter["name"]
        assert head.description
    else:
        assert any(problem.severity == "error" for problem in head.problems)
    lines = data.count(b"\n") + data.count(b"\r") + 2
    for problem in head.problems:
        assert problem.message
        if problem.span is not None:
            assert 1 <= problem.span.start.line <= lines


@given(WRITTEN)
def test_the_quick_reader_agrees_with_the_thorough_one(data: bytes) -> None:
    quick, thorough = read_head(data, "a", None), read_thoroughly(data, "a", None)
    assert quick.frontmatter == thorough.frontmatter
    assert quick.valid == thorough.valid
    assert [one.code for one in quick.problems] == [one.code for one in thorough.problems]
