from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.workflows.rating import GRADES, MOST_AREAS, Rating, RatingShape, read_rating

FULL = {
    "rating": "FAIR",
    "feedback": "too long",
    "needs_improvement": True,
    "focus_areas": ["length", "tone"],
}


def rated(**changes: object) -> str:
    return json.dumps({**FULL, **changes})


@pytest.mark.spec("EVAL-1")
def test_a_rating_is_read() -> None:
    assert read_rating(rated()) == Rating("FAIR", "too long", True, ("length", "tone"))


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{rated()}\n```",
        f"Here it is:\n{rated()}\nI hope this helps.",
        rated(rating=" fair "),
        rated(more="that nobody asked for"),
    ],
)
def test_what_stands_around_it_and_the_case_of_the_grade_do_not_matter(text: str) -> None:
    assert read_rating(text) == Rating("FAIR", "too long", True, ("length", "tone"))


def test_what_is_missing_has_a_plain_meaning() -> None:
    assert read_rating('{"rating": "EXCELLENT"}') == Rating("EXCELLENT", "", False, ())
    assert read_rating('{"rating": "GOOD", "feedback": null}') == Rating("GOOD", "", True, ())
    assert read_rating(rated(focus_areas="length")).focus_areas == ("length",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I like it.", "holds no JSON object"),
        ("}{", "the object in it has no end"),
        ('{"rating": "GOOD", "feed', "the object in it has no end"),
        ("{not json}", "is not JSON"),
        ("{" * 100_000 + "}" * 100_000, "is not JSON"),
        ("{}", "`rating` must be one of `POOR`, `FAIR`, `GOOD`, `EXCELLENT`, but is `null`"),
        (rated(rating="SUPERB"), 'but is `"SUPERB"`'),
        (rated(rating=3), "but is `3`"),
        (rated(feedback=["x"]), "`feedback` must be a text"),
        (rated(needs_improvement="no"), "`needs_improvement` must be true or false"),
        (rated(focus_areas={"a": 1}), "`focus_areas` must be a list of texts"),
        (rated(focus_areas=[1]), "`focus_areas` must be a list of texts"),
    ],
)
def test_what_is_no_rating_is_told(text: str, problem: str) -> None:
    with pytest.raises(
        ValueError,
        match=re.escape(problem),
    ):
        read_rating(text)


@settings(max_examples=40)
@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(json.dumps)
)
def test_anything_is_a_rating_or_a_value_error(text: str) -> None:
    try:
        rating = read_rating(text)
    except ValueError:
        return
    assert rating.grade in GRADES


def test_the_first_unreadable_text_is_an_error_and_the_second_counts_as_poor() -> None:
    shape = RatingShape()
    with pytest.raises(ValueError, match="no JSON"):
        shape.parse("nice")
    assert shape.problem is not None
    poor = shape.parse(" very nice ")
    assert (poor.grade, poor.feedback, poor.needs_improvement) == ("POOR", "very nice", True)
    assert poor.problem is not None


def test_better_is_a_better_grade_or_the_same_without_a_need() -> None:
    assert Rating("GOOD").beats(Rating("FAIR", needs_improvement=False))
    assert Rating("FAIR", needs_improvement=False).beats(Rating("FAIR"))
    assert not Rating("FAIR").beats(Rating("FAIR"))
    assert [Rating(grade).reaches("GOOD") for grade in GRADES] == [False, False, True, True]


def test_of_very_many_areas_the_first_are_taken() -> None:
    areas = [f"area {number}" for number in range(100_000)]
    rating = read_rating(json.dumps({"rating": "POOR", "focus_areas": areas}))
    assert rating.focus_areas == tuple(areas[:MOST_AREAS])
