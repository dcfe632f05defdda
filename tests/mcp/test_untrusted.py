from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.mcp.content import block, one_line, opens_safely


def test_controls_bidirectional_marks_and_tags_are_dropped() -> None:
    assert one_line("a\x1b[2J\u202eb\U000e0041c\nd\t e") == "a[2Jbc d e"
    assert block("a\r\nb\x00\tc", 100) == "a\nb\tc"


def test_long_texts_are_cut_and_say_so() -> None:
    assert one_line("x" * 11, 10) == "x" * 9 + "…"
    assert block("x" * 11, 10) == "x" * 10 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


@given(st.text(), st.integers(2, 50))
def test_a_line_is_one_bounded_printable_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    assert not any(character in line for character in "\x00\x1b\x7f\u202e\ud800")


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://example.com/a?b=c", True),
        ("http://127.0.0.1:8000/", True),
        ("https://bank.com@evil.com/", False),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("https:///path", False),
        ("https://exa\u202emple.com", False),
        ("https://example.com/a b", False),
        ("http://[::1", False),
    ],
)
def test_only_plain_web_addresses_are_opened(url: str, safe: bool) -> None:
    assert opens_safely(url) is safe
