"""The repetition stop as a value: which texts repeat themselves, and where they are cut off."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.models.local.repetition import (
    LOOP_CHARS,
    MAX_SENTENCE_CHARS,
    PASSAGE_CHARS,
    PATIENCE_IN_CODE,
    RepetitionStop,
)

KEY = "Practice is key."
PARAGRAPH = (
    "The tides are caused by the pull of the Moon, which moves the water of the oceans and lets "
    "it rise and fall twice a day."
)
SEA = "The sea is deep."


def kept(text: str, *, passages: bool = True, in_call: bool = False) -> str | None:
    """What is left of a text that repeats itself; None for one that does not."""
    stop = RepetitionStop(passages=passages)
    cut = stop.add(f"{text}\n", in_call=in_call)
    return None if cut is None else text[:cut]


LOOPS = {
    "sentences": (f"{SEA} " + f"{KEY} " * 9, f"{SEA} {KEY}"),
    "lines": (f"{SEA}\n\n" + f"{KEY}\n\n" * 9, f"{SEA}\n\n{KEY}"),
    "two lines in turn": (f"{SEA}\n{KEY}\n" * 9, f"{SEA}\n{KEY}"),
    "list items": ("".join(f"{n}. {KEY}\n" for n in range(1, 9)), f"1. {KEY}\n"),
    "bullets": (f"- {KEY}\n" * 9, f"- {KEY}"),
    "lines without an end": ("The answer is:\n\n" * 12, "The answer is:"),
    "words": ("It is very" + " very" * 90, "It is very"),
    "in the middle of a sentence": (
        "I say the cat sat. " + "Then the cat sat. " * 9,
        "I say the cat sat. Then the cat sat.",
    ),
    "quoted": ('"Yes, I will come." ' * 9, '"Yes, I will come."'),
    "no spaces": ("我们今天去看大海。" * 12, "我们今天去看大海。"),
    "a passage, later": (
        f"{PARAGRAPH}\n\n{SEA}\n\n{PARAGRAPH}\n\n{KEY}",
        f"{PARAGRAPH}\n\n{SEA}",
    ),
    "items of a list": (
        "It is used for:\n* games\n* data\n* the web\n* games\n* data\n* the web\n* more",
        "It is used for:\n* games\n* data\n* the web",
    ),
    "items after one that ends alike": (
        "- web work\n- data\n- art\n- law\n- game work\n- data\n- art\n- law\n- more\n",
        "- web work\n- data\n- art\n- law\n- game work",
    ),
    "a passage in another sentence": (
        f"{PARAGRAPH} {SEA} In short: t{PARAGRAPH[1:]} {KEY}",
        f"{PARAGRAPH} {SEA} In short: t{PARAGRAPH[1:]}",
    ),
}


@pytest.mark.spec("MODEL-16")
@pytest.mark.parametrize("name", LOOPS)
def test_what_repeats_itself_is_cut_at_the_end_of_a_sentence_or_line(name: str) -> None:
    text, left = LOOPS[name]
    assert (kept(text) or "").rstrip() == left.rstrip()


HONEST = {
    "nothing": "",
    "one word": "Paris",
    "prose": f"{SEA} {PARAGRAPH} {KEY}",
    "a laugh": "Ha ha ha ha ha ha ha, that is a good one.",
    "a chorus": "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily.\n" * 2,
    "a table": "| a | b |\n|---|---|\n" + "| - | - |\n" * 60,
    "zeros": "0 0 0 0 0 0 0 0\n" * 8,
    "counted": " ".join(f"Step {n}: add {n} and {n}, which gives {2 * n}." for n in range(40)),
    "months": "".join(f"- {month} has a first day.\n" for month in ("May", "June", "July")),
    "two items twice": "We need:\n* eggs\n* milk\n* salt\n\nAgain:\n* eggs\n* milk\n* oil\n",
    "words of items": "- a cat\n- a dog\n- a cow\n\nWe saw a cat a dog a cow there.\n",
    "code": "```python\n" + "    case _:\n        return None\n" * 20 + "```\n",
    "code twice": f"```\n{PARAGRAPH}\n```\n\n```\n{PARAGRAPH}\n```\n",
    "rule": "Above.\n" + "-" * 300 + "\n" + "* " * 200 + "\nBelow.",
}


@pytest.mark.spec("MODEL-16")
@pytest.mark.parametrize("name", HONEST)
def test_what_has_reason_to_look_alike_is_left_whole(name: str) -> None:
    assert kept(HONEST[name]) is None


def unit(length: int) -> str:
    """A sentence of so many characters, with words of their own."""
    words = [f"w{number}" for number in range(length)]
    text = ""
    while len(text) < length:
        text += words.pop(0) + " "
    return text[: length - 1].rstrip().ljust(length - 1, "x") + "."


@pytest.mark.spec("MODEL-16")
@pytest.mark.parametrize(
    ("length", "times", "repeats"),
    [
        # 2 times more than once, and 60 characters said again: 30 + 1 + 30 reach it, 29 do not.
        (30, 2, False),
        (30, 3, True),
        (29, 3, False),
        (29, 4, True),
        # A passage of 100 characters need be there only twice.
        (99, 2, False),
        (100, 2, True),
        (99, 3, True),
    ],
)
def test_borders_of_loops_and_passages(length: int, times: int, repeats: bool) -> None:
    assert (LOOP_CHARS, PASSAGE_CHARS) == (60, 100)
    text = " ".join([unit(length)] * times)
    assert (kept(text) is not None) is repeats
    if repeats:
        assert kept(text) == unit(length)


@pytest.mark.spec("MODEL-16")
@pytest.mark.parametrize("before", ["```\n", "~ "])
def test_code_and_calls_repeat_themselves_longer(before: str) -> None:
    line = "x = f(x)  # again\n"
    needed = LOOP_CHARS * PATIENCE_IN_CODE // len(line) + 2
    few, many = before + line * (needed - 2), before + line * (needed + 2)
    in_call = before == "~ "
    assert kept(few, in_call=in_call) is None
    assert kept(many, in_call=in_call) is not None
    assert kept(few) is None or in_call


@pytest.mark.spec("MODEL-16")
def test_passages_count_only_where_they_are_asked_for() -> None:
    text = f"{PARAGRAPH} {SEA} {PARAGRAPH} {KEY}"
    assert kept(text) is not None
    assert kept(text, passages=False) is None
    assert kept(f"{KEY} " * 9, passages=False) == KEY


@pytest.mark.spec("MODEL-16")
def test_a_sentence_without_an_end_is_cut_where_it_began_to_repeat() -> None:
    start = "On and on it goes" + ", on and on" * 40
    stop = RepetitionStop()
    assert stop.add(f"{start[: LOOP_CHARS * 2]} ") is None
    assert stop.sure < LOOP_CHARS
    left = kept(start + " ")
    assert left is not None
    assert len(left) < LOOP_CHARS
    stop = RepetitionStop()
    assert stop.add(f"{start[:MAX_SENTENCE_CHARS]} ") is None
    assert stop.add(start[MAX_SENTENCE_CHARS:]) == len(left)


TEXTS = st.lists(
    st.sampled_from([KEY, PARAGRAPH, SEA, "and", "on.", "1.", "```", "-", "的。", "x" * 30]),
    max_size=60,
).flatmap(
    lambda words: st.lists(
        st.sampled_from([" ", "\n", "  \n"]), min_size=len(words), max_size=len(words)
    ).map(lambda gaps: "".join(word + gap for word, gap in zip(words, gaps, strict=True)))
)


@pytest.mark.spec("MODEL-16")
@given(text=TEXTS, seed=st.integers(0, 1000), passages=st.booleans())
def test_pieces_decide_nothing_and_what_is_sure_stays(text: str, seed: int, passages: bool) -> None:
    whole = RepetitionStop(passages=passages)
    expected = whole.add(text)
    chance = random.Random(seed)
    stop, at, sure = RepetitionStop(passages=passages), 0, 0
    while at < len(text) and stop.cut is None:
        step = chance.randint(1, 12)
        stop.add(text[at : at + step])
        at += step
        assert stop.sure >= sure
        sure = stop.sure
    assert stop.cut == expected
    assert sure <= (len(text) if expected is None else expected)
    if expected is not None:
        assert text[:expected] == text[:expected].rstrip()
        again = RepetitionStop(passages=passages)
        assert again.add(text[:expected]) is None
