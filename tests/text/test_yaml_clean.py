"""Both ways to read YAML give the same: the quick one may only decline."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fast_agent.text.yaml_document import parse_clean
from fast_agent.text.yaml_nodes import Composition

SOUP = " \n:-?[]{},#&*!|>'\"%@`ab1.0x~n\\$é\u2028\t"

VOCABULARY = (
    "type agent name é yes no on off true True TRUE false null Null ~ 1 -1 +1 017 0x1F 0o17 -0x1 "
    "1.5 .5 1. 1e3 1e400 .inf -.INF .nan 1_000 0b11 1:30 2026-11-21 a:b http://x.y/z: x# #x = << "
    '[] {} \'it\'\'s\' \'a: b\' "q" "a: b" "a\\tb" a,b [a,b] [a:b] ["a":b] {a:b} {{x}} ${V:d} '
    "x.py:f [x.py:f] --a ./b /c:d "
    "& * ! &a *a !t 99999999999999999999 0xFFFFFFFFFFFFFFFFF - -- --- ... @x `x` %x |x >x ?x ? "
    "a:\u2029 -a :a a: : [a, b: c] [,] ] [a, [b] [?a] [:a] -1.5 -1e3 (a) /x $a"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))
SCALARS = st.lists(WORDS, min_size=0, max_size=3).map(" ".join)
KEYS = st.sampled_from(["a", "b", "c", "'a'", '"b"', "type", "a b", "x:y", "1", "true", "? a", ""])
HEADS = st.sampled_from(["|", ">", "|-", ">-", "|+", ">+", "|2", "| # c", ">-1", "|  "])


COMMAS = st.sampled_from([", ", ",", " , ", " ", ",, ", ""])


@st.composite
def flows(draw: st.DrawFn) -> str:
    """Lists and mappings on one line, most of them right."""
    items = draw(st.lists(st.one_of(SCALARS, SCALARS.map(lambda text: f"[{text}, a]")), max_size=3))
    if draw(st.booleans()):
        items = [f"{draw(KEYS)}{draw(st.sampled_from([': ', ':', ' : ']))}{one}" for one in items]
        items = items or [f"{draw(KEYS)}: 1"]
    start, end = draw(st.sampled_from(["{}", "{}", "{}", "[]", "[}", "{]"]))
    return f"{start}{draw(COMMAS).join(items)}{end}"


@st.composite
def lines(draw: st.DrawFn) -> str:
    indent = " " * draw(st.sampled_from([0, 0, 0, 1, 2, 2, 4]))
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return f"{indent}{draw(KEYS)}: {draw(HEADS)}"
    if shape == 1:
        return f"{indent}- {draw(SCALARS)}"
    if shape == 2:
        return f"{indent}- {draw(KEYS)}: {draw(SCALARS)}"
    if shape == 3:
        return f"{indent}{draw(SCALARS)}"
    if shape == 4:
        return f"{indent}{draw(KEYS)}:"
    if shape in {8, 9}:
        return f"{indent}{draw(KEYS)}: {draw(flows())}{draw(st.sampled_from(['', ' ', ' # c']))}"
    if shape == 5:
        return draw(st.sampled_from(["", " ", "  ", "# c: d", "  # c"]))
    return f"{indent}{draw(KEYS)}: {draw(SCALARS)}"


CARDS = st.sampled_from(
    [
        "type: agent\nname: a\nservers:\n  - time\n  - git\ntools:\n  time: [get, 'set_*']\n",
        "name: b\ninstruction: |\n  Say: this.\n\n  And *that*.\n\nmodel: x\nk: 3\n",
        "name: c\ndescription: >-\n  One two\n  three\nuse_history: false\n",
        "mcp_connect:\n- target: http://x/y\n  headers:\n    a: b\n- 'npx x'\nname: d # here\n",
        'name: "e: f"\nrequest_params:\n    maxTokens: 10\n    stop_sequences: ["a", b]\n',
        "name: g h\n  and more\nagents:\n- a\n-  b\n\n# end\n",
        'tools: {"time": [get, "set_*"], git: [] }\nparams: { max: 10, "a b": x y }\n',
    ]
)


@st.composite
def edited(draw: st.DrawFn) -> str:
    text = draw(CARDS)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = text[:at] + draw(st.text(SOUP, max_size=3)) + text[at + cut :]
    return text


TEXTS = st.one_of(
    edited(),
    edited(),
    edited(),
    st.lists(lines(), max_size=7).map("\n".join),
    st.lists(lines(), max_size=7).map(lambda found: "\n".join(found) + "\n"),
    st.text(SOUP, max_size=30),
    st.text(SOUP, max_size=30).map(lambda text: f"a: {text}"),
    st.text(SOUP, max_size=30).map(lambda text: f"a: |\n  {text}\nb: 1\n"),
)


@settings(max_examples=3000)
@given(TEXTS)
@example("a: 1\na: 2")
@example('{"a":1, "a": 2}')
@example('b: "x:"\na: 1\na: 2')
@example('a: "\\x3a x"\nb: 1\nb: 2')
@example("a:\n  - b: 1\n    b: 2\n")
@example("a: {b: 1, b: 2}\n")
@example('a: {"b: c": 1, b: 2}\n')
@example("a: {b: 1 , : 2}\n")
@example("a: {yes: no, b: 017, c: 1_000}\n")
@example("# a: b\nc: 1\nc: 2\n")
@example("t: |\n  # a: b\nc: 1\nc: 2\n")
@example("a: [x:y, 1:30, --b, ..., /c:d]\n")
def test_what_the_quick_way_accepts_the_thorough_way_reads_the_same(text: str) -> None:
    quick = parse_clean(text)
    if quick is None:
        return
    thorough = Composition(text, 1)
    assert thorough.problems == []
    assert thorough.value == quick
    assert repr(thorough.value) == repr(quick)


@pytest.mark.parametrize(
    "text",
    [
        "type: agent\nname: a\nservers:\n  - time\ntools:\n  time: [get_time, 'set_*']\n",
        "instruction: |\n  Greet: always.\n\n  Use *stars* and {{agentName}}.\nshell: false\n",
        "---\nname: a\nmodel: provider.name.high\nrequest_params:\n  maxTokens: 10\n",
        'description: "a: b"\nagents: []\n',
        "k: 3\ntemperature: 0.5\nskills:\n",
        "tools: {docs: [search, 'get_*'], time: []}\nparams: {max: 5, \"p\": 0.5}\n",
        "a: { b: c d }\n",
        "# Of a kind: so.\nfunction_tools: [tools.py:add, lib/x.py:f]\nargs: [--utc, ./x] # here\n",
    ],
)
def test_ordinary_cards_go_the_quick_way(text: str) -> None:
    assert parse_clean(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: {b: {c: 1}}",
        "a: {b}",
        "a: {b:1}",
        "a: &x 1\nb: *x",
        "a: !t x",
        "1: a",
        "a: .nan",
        "- a",
        "",
        "a: [1",
    ],
)
def test_anything_else_does_not(text: str) -> None:
    assert parse_clean(text) is None
