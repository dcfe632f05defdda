from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.text.environment import UnsetVariableError, escape, expand, has_variable

ENVIRON = {"A": "x", "EMPTY": "", "NESTED": "${A}"}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("${A}", "x"),
        ("a${A}b${A}", "axbx"),
        ("${A:other}", "x"),
        ("${NO:other}", "other"),
        ("${NO:}", ""),
        ("${EMPTY:other}", ""),
        ("${NO:http://h:1/}", "http://h:1/"),
        ("${NESTED}", "${A}"),
        ("$${A}", "${A}"),
        ("$A ${} ${1} ${a b} ${A", "$A ${} ${1} ${a b} ${A"),
    ],
)
def test_variables_are_replaced_once(text: str, result: str) -> None:
    assert expand(text, ENVIRON) == result


def test_every_unset_variable_is_named_once() -> None:
    with pytest.raises(UnsetVariableError) as caught:
        expand("${NO} ${A} ${NEITHER} ${NO}", ENVIRON)
    assert caught.value.names == ("NO", "NEITHER")
    assert "`NO`, `NEITHER` are not set" in caught.value.message
    assert caught.value.hint == "set them, or set a default: `${NO:default}`"


@given(st.text("${}A:$ ", max_size=12))
def test_an_escaped_text_comes_back(text: str) -> None:
    assert expand(escape(text), {}) == text


@given(st.text("${}A:$ ", max_size=12))
def test_a_text_without_variables_stays(text: str) -> None:
    if not has_variable(text):
        assert expand(text, ENVIRON) == text
