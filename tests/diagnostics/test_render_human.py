from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic, Fix, RelatedPlace
from fast_agent.diagnostics.render_human import excerpt, render_cards, render_human, summarize
from fast_agent.text.span import Position, Span
from fast_agent.text.visible import cells

TYPO = Diagnostic(
    "FA101",
    "`agent` has no field `modle`",
    "cards/a.md",
    Span.at(3, 1, 5),
    hint="did you mean `model`?",
    fix=Fix(Span.at(3, 1, 5), "model"),
    source_line="modle: gpt",
)


@pytest.mark.spec("CARDS-4")
def test_one_problem() -> None:
    assert render_human([TYPO]) == (
        "error[FA101]: `agent` has no field `modle`\n"
        "  --> cards/a.md:3:1\n"
        "3 | modle: gpt\n"
        "  | ^^^^^\n"
        "hint: did you mean `model`?\n"
        "\n"
        "1 error (1 fixable with `--fix`)\n"
    )


def test_a_message_of_several_lines_passes_for_no_problem_of_its_own() -> None:
    problem = Diagnostic("FA802", "left out\nerror[FA101]: forged\x1b[2J", "", hint="one\n  two")
    assert render_human([problem]) == (
        "error[FA802]: left out\n"
        "  error[FA101]: forged<U+001B>[2J\n"
        "hint: one\n"
        "        two\n"
        "\n"
        "1 error\n"
    )


def test_nothing_is_nothing() -> None:
    assert render_human([]) == ""
    assert summarize([]) == "no problems"


def test_related_places_and_several_severities() -> None:
    twice = Diagnostic(
        "FA204",
        "two cards are called `a`",
        "b.md",
        Span.at(10, 7, 1),
        related=(RelatedPlace("the first is here", "a.md", Span.at(2, 7, 1)),),
        source_line="name: a",
    )
    whole = Diagnostic("FA9", "skipped", "docs.yaml", severity="info")
    nowhere = Diagnostic("FA8", "odd", "", severity="warning", hint="first line\nsecond line")
    text = render_human([twice, nowhere, whole])
    assert "note: the first is here\n  --> a.md:2:7\n" in text
    assert "10 | name: a\n   |       ^\n" in text
    assert "warning[FA8]: odd\nhint: first line\n      second line\n" in text
    assert "info[FA9]: skipped\n  --> docs.yaml\n" in text
    assert text.endswith("\n\n1 error, 1 warning, 1 note\n")
    assert "1 error" not in render_human([twice], summary=False)


def test_untrusted_text_cannot_reach_the_terminal() -> None:
    evil = Diagnostic(
        "FA101",
        "no field `\x1b]0;owned\x07`\nerror[FA999]: faked",
        "a\x1b[2J.md",
        Span.at(1, 1, 4),
        hint="x\x1b[0m\u202e",
        source_line="\x1b[31mred\u202e: 1",
        related=(RelatedPlace("\x1b[1m", "b\r.md"),),
    )
    text = render_human([evil])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    assert "\nerror[FA999]" not in text


def test_colour_adds_only_escapes() -> None:
    painted = render_human([TYPO], color=True)
    assert "\x1b[1;31merror[FA101]\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_human([TYPO])


def test_cards_are_a_table() -> None:
    facts = [
        CardFact("名前", "agent", "a.md", default=True, tool_only=False),
        CardFact("bb", "MAKER", "cards/b.md", default=False, tool_only=True),
        CardFact("c", "chain", "c.yaml", default=False, tool_only=False),
    ]
    assert render_cards(facts) == (
        "名前  agent  a.md        default\n"
        "bb    MAKER  cards/b.md  tool only\n"
        "c     chain  c.yaml\n"
    )


def underlined(line: str, span: Span, width: int = 100) -> str:
    """Read back the text above the caret, by terminal columns."""
    text, caret = excerpt(line, span, width=width)
    begin = len(caret) - len(caret.lstrip())
    taken = ""
    column = 0
    for character in text:
        size = cells(character)
        if begin <= column < len(caret) and (size or taken):
            taken += character
        column += size
    return taken


@pytest.mark.parametrize(
    ("line", "column", "width", "expected"),
    [
        ("modle: gpt", 1, 5, "modle"),
        ("\tmodle: gpt", 2, 5, "modle"),
        ("a\tmodle: gpt", 3, 5, "modle"),
        ("名前: modle", 5, 5, "modle"),
        ("# 名前", 3, 2, "名前"),
        ("e\u0301e\u0301 modle", 6, 5, "modle"),
        ("x\u202e modle", 4, 5, "modle"),
        ("short", 40, 3, ""),
    ],
)
def test_the_caret_is_under_the_span(line: str, column: int, width: int, expected: str) -> None:
    assert underlined(line, Span.at(1, column, width)) == expected


def test_a_span_over_several_lines_is_underlined_to_the_end_of_the_first() -> None:
    assert excerpt("key: [a,", Span(Position(1, 6), Position(3, 2))) == ("key: [a,", "     ^^^")


def test_an_empty_span_has_one_caret() -> None:
    assert excerpt("ab", Span.at(1, 3, 0)) == ("ab", "  ^")


def test_a_long_line_is_cut_around_the_span() -> None:
    line = "x" * 500 + "WRONG" + "y" * 500
    text, caret = excerpt(line, Span.at(1, 501, 5), width=60)
    assert cells(text) <= 60
    assert text.startswith("…x")
    assert text.endswith("y…")
    assert text[len(caret) - 5 : len(caret)] == "WRONG"
    begin, _ = excerpt(line, Span.at(1, 1, 1), width=60)
    assert begin.startswith("x")
    assert begin.endswith("…")


@given(
    st.text(st.characters(exclude_characters="\n\r"), max_size=300),
    st.integers(1, 320),
    st.integers(0, 320),
    st.integers(20, 120),
)
def test_no_line_is_wider_than_asked(line: str, column: int, size: int, width: int) -> None:
    text, caret = excerpt(line, Span.at(1, column, size), width=width)
    assert cells(text) <= width
    assert len(caret) <= width + 1
    assert caret.strip(" ").strip("^") == ""
    assert "^" in caret
