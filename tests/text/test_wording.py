from __future__ import annotations

import time

import pytest

from fast_agent.text.wording import (
    closest,
    did_you_mean,
    first_of,
    local_minute,
    plural,
    shortened_line,
)

FIELDS = ("instruction", "description", "servers", "skills", "max_parallel", "use_history", "model")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("instruktion", "instruction"),
        ("instructions", "instruction"),
        ("Instruction", "instruction"),
        ("useHistory", "use_history"),
        ("max-parallel", "max_parallel"),
        ("sevrers", "servers"),
        ("modle", "model"),
        ("server", "servers"),
        ("temperature", None),
        ("x", None),
        ("", None),
        ("model" * 100, None),
    ],
)
def test_the_closest_choice(word: str, meant: str | None) -> None:
    assert closest(word, FIELDS) == meant


def test_short_words_are_not_guessed_from_nothing() -> None:
    assert closest("b", ("a", "c")) is None
    assert closest("ab", ("ac",)) == "ac"


def test_the_first_of_equals_wins() -> None:
    assert closest("cat", ("bat", "hat")) == "bat"


def test_the_hint_names_the_closest_choice() -> None:
    assert did_you_mean("writer") == "did you mean `writer`?"
    assert did_you_mean("writer", "list them") == "did you mean `writer`?"
    assert did_you_mean(None, "list them") == "list them"
    assert did_you_mean(None) is None


@pytest.mark.parametrize(
    ("number", "nouns", "shown"),
    [
        (0, None, "0 turns"),
        (1, None, "1 turn"),
        (2, None, "2 turns"),
        (1_204, None, "1,204 turns"),
        (1, "turning points", "1 turn"),
        (3, "turning points", "3 turning points"),
    ],
)
def test_a_number_with_its_noun(number: int, nouns: str | None, shown: str) -> None:
    assert plural(number, "turn", nouns) == shown


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ((), ""),
        (("a",), "`a`"),
        (("a", "b"), "`a`, `b`"),
        (("a", "b", "c"), "`a`, `b` and 1 more"),
        (("a", "b", "c", "d"), "`a`, `b` and 2 more"),
    ],
)
def test_the_first_of_some_names(names: tuple[str, ...], shown: str) -> None:
    assert first_of(names, 2) == shown


def test_a_time_is_shown_in_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert local_minute(1_000_000_059.9) == "2001-09-09 10:47"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("abcde", "abcde"),
        (" ab\n\tc ", "ab c"),
        ("abcdef", "abcd…"),
        ("abc def", "abc…"),
    ],
)
def test_a_line_that_is_too_long_is_cut(text: str, line: str) -> None:
    assert shortened_line(text, 5) == line
