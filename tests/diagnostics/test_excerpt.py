from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.diagnostics.excerpt import excerpt
from fast_agent.text.span import Position, Span
from fast_agent.text.visible import cells


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
