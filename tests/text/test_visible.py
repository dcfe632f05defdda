from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.text.visible import cells, glyphs, visible, visible_lines


def test_plain_text_is_left_alone() -> None:
    assert visible("naïve 漢字 👩‍👩‍👧 text") == "naïve 漢字 👩‍👩‍👧 text"


def test_controls_and_bidirectional_marks_are_shown() -> None:
    assert visible("a\x1b[31mb") == "a<U+001B>[31mb"
    assert visible("a\u202eb\u2066c\u200b\ufeff") == "a<U+202E>b<U+2066>c<U+200B><U+FEFF>"
    assert visible("one\ntwo\r\u2028\x85\x7f") == "one<U+000A>two<U+000D><U+2028><U+0085><U+007F>"
    assert visible("\ud800\U000e0041") == "<U+D800><U+E0041>"


def test_cells_count_terminal_columns() -> None:
    assert cells("abc") == 3
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1


def test_tabs_go_to_the_next_stop() -> None:
    assert glyphs("a\tb") == [("a", 1), ("   ", 3), ("b", 1)]
    assert glyphs("漢\tb")[1] == ("  ", 2)


def test_joiners_and_selectors_stay_where_they_have_work_to_do() -> None:
    for text in ("👩‍👩‍👧", "❤️‍🔥", "1️⃣", "👋🏽", "می‌خواهم", "क्‍ष", "🏳️‍🌈", "葛󠄀"):
        assert visible(text) == text
    assert visible("pass\u200dword") == "pass<U+200D>word"
    assert visible("漢\u200d字") == "漢<U+200D>字"
    assert visible("👩\u200d\u200d") == "👩\u200d<U+200D>"
    assert visible("a\ufe0f☺\ufe0f\ufe01\ufe02") == "a<U+FE0F>☺\ufe0f<U+FE01><U+FE02>"
    assert visible("a\U000e0041\ufe0f") == "a<U+E0041><U+FE0F>"


def test_letters_without_a_shape_are_shown() -> None:
    assert visible("a\u3164\u115f\u034fb") == "a<U+3164><U+115F><U+034F>b"


def test_lines_keep_their_ends_and_tabs_alone() -> None:
    assert visible_lines("one\n\ttwo\r\nthree\x0b") == "one\n\ttwo<U+000D>\nthree<U+000B>"


@given(st.text(), st.integers(0, 20))
def test_a_text_may_be_cut_anywhere(text: str, place: int) -> None:
    before, after = text[:place], text[place:]
    assert visible_lines(before) + visible_lines(after, before[-1:]) == visible_lines(text)


@given(st.text())
def test_what_is_shown_stays_as_it_is(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    for before, character in zip(" " + visible(text), visible(text), strict=False):
        category = unicodedata.category(character)
        if character in "\u200c\u200d":
            assert unicodedata.category(before) in {"So", "Sk", "Mn", "Mc", "Lo"}
        else:
            assert category not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
