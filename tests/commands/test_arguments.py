"""Lines taken apart: quotes, options, the rest of a line, and what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.commands.command import (
    Arguments,
    Command,
    Option,
    Word,
    next_token,
    parse_arguments,
)
from fast_agent.errors import RunError

PLAIN = Command(
    name="plain",
    summary="",
    words=(Word("ONE", required=True), Word("TWO")),
    options=(Option("--flag", ""), Option("--value", "", "X")),
)
REST = Command(
    name="rest",
    summary="",
    words=(Word("ONE", required=True), Word("TEXT", rest=True)),
    options=PLAIN.options,
)


def parse(command: Command, rest: str) -> Arguments:
    return parse_arguments(command, rest, said=f"/{command.name}")


@pytest.mark.parametrize(
    ("rest", "words", "options"),
    [
        ("one", ("one",), {}),
        (" one\ttwo ", ("one", "two"), {}),
        ("'o n e' \"t'w\\\"o\"", ("o n e", "t'w\"o"), {}),
        ("a\\b 'c\\d\\\\'", ("a\\b", "c\\d\\"), {}),
        ("it's", ("it's",), {}),
        ("--flag one --value=x", ("one",), {"--flag": "", "--value": "x"}),
        ("--value 'a b' one", ("one",), {"--value": "a b"}),
        ("--value '--flag' one", ("one",), {"--value": "--flag"}),
        ("--value= one", ("one",), {"--value": ""}),
        ("'--flag'", ("--flag",), {}),
        ("-- --flag --", ("--flag", "--"), {}),
        ("-x -", ("-x", "-"), {}),
    ],
)
def test_words_and_options(rest: str, words: tuple[str, ...], options: dict[str, str]) -> None:
    assert parse(PLAIN, rest) == Arguments(words, options)


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("one it's 'as --it is", "it's 'as --it is"),
        ('one "two" ', '"two"'),
        ("one --flag  a  b", "a  b"),
        ("one -- --flag", "--flag"),
        ("one", None),
    ],
)
def test_the_rest_of_a_line_is_kept_as_it_is(rest: str, text: str | None) -> None:
    assert parse(REST, rest).word(1) == text


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "ONE is missing"),
        ("--flag", "ONE is missing"),
        ("a b c", "unexpected argument `c`"),
        ("'a", "unclosed quote"),
        ("a --value 'b", "unclosed quote"),
        ("a --value", "`--value` needs a value"),
        ("a --value --flag", "`--value` needs a value"),
        ("a --flag=x", "`--flag` takes no value"),
        ("a --flga", "did you mean `--flag`?"),
        ("a --unheard-of", "there is no option `--unheard-of`"),
    ],
)
def test_what_is_wrong_is_reported_with_the_usage(rest: str, message: str) -> None:
    with pytest.raises(RunError) as caught:
        parse(PLAIN, rest)
    assert message in caught.value.message
    assert caught.value.hint == "the usage is `/plain ONE [TWO] [--flag] [--value X]`"


@given(st.text(max_size=40), st.sampled_from([PLAIN, REST]))
def test_any_text_is_taken_apart_or_refused(rest: str, command: Command) -> None:
    try:
        found = parse(command, rest)
    except RunError:
        return
    assert 1 <= len(found.words) <= 2


@given(st.text(max_size=20), st.sampled_from("'\""))
def test_a_quoted_word_is_read_back(text: str, quote: str) -> None:
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    token = next_token(f"  {quote}{escaped}{quote} more", 0)
    assert token is not None
    assert (token.text, token.quoted, token.closed) == (text, True, True)
