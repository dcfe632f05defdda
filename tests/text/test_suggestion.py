from __future__ import annotations

import pytest

from fast_agent.text.suggestion import closest, did_you_mean

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
