from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.diagnostics.visible import cells, glyphs, visible


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


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    for character in visible(text):
        assert character in "\u200c\u200d" or unicodedata.category(character) not in {
            "Cc",
            "Cf",
            "Cs",
            "Zl",
            "Zp",
        }
