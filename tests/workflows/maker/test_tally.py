"""The tally, against counting anew."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.workflows.maker.tally import Tally


@given(st.text("abcd", max_size=40), st.integers(1, 6))
def test_the_margin_is_that_of_the_two_highest_counts(votes: str, k: int) -> None:
    tally = Tally(k)
    for number, vote in enumerate(votes, 1):
        tally.add(vote)
        counts = Counter(votes[:number])
        ranked = [count for _, count in counts.most_common()]
        assert tally.votes == counts
        assert tally.leader is not None
        assert counts[tally.leader] == ranked[0]
        assert tally.margin == ranked[0] - (ranked[1] if len(ranked) > 1 else 0)
        assert tally.decided == (tally.margin >= k)


def test_of_equals_the_one_that_was_there_first_leads() -> None:
    tally = Tally(3)
    for vote in "abba":
        tally.add(vote)
    assert (tally.leader, tally.margin) == ("b", 0)


def test_no_votes_decide_nothing() -> None:
    assert (Tally(1).leader, Tally(1).margin, Tally(1).decided) == (None, 0, False)
