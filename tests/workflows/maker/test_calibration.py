"""Calibration: p from a sample, how sure it is, and the k that follows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import LimitError, ModelError, RunError
from fast_agent.workflows.maker.calibration import (
    Calibration,
    Estimate,
    calibrate,
    smallest_k,
    usual_samples,
)
from fast_agent.workflows.maker.race import Sample

if TYPE_CHECKING:
    from fast_agent.workflows.maker.race import Draw


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        # Wilson's score interval at 95 %, from tables.
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (95, 100, 0.8882, 0.9785),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_the_interval_is_wilsons(hits: int, trials: int, low: float, high: float) -> None:
    assert Estimate(hits, trials).interval == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_stays_a_probability(sample: tuple[int, int]) -> None:
    estimate = Estimate(*sample)
    low, high = estimate.interval
    assert 0 <= low <= estimate.share <= high <= 1


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random, inside = Random(7), 0
    for _ in range(2000):
        hits = sum(random.random() < 0.9 for _ in range(60))
        low, high = Estimate(hits, 60).interval
        inside += low <= 0.9 <= high
    assert 0.93 <= inside / 2000 <= 0.97


def drawer(letters: str) -> Draw:
    async def draw(number: int) -> Sample:
        await anyio.lowlevel.checkpoint()
        letter = letters[number - 1]
        return Sample("", "", flag="empty") if letter == "-" else Sample(letter, letter)

    return draw


@pytest.mark.anyio
async def test_what_most_answers_say_counts_as_right() -> None:
    got = await calibrate(drawer("aababa-acaa-"), 12)
    assert got == Calibration(Estimate(7, 10), Estimate(10, 12))
    assert got.to_json() == {
        "p": 0.7,
        "p_low": got.right.interval[0],
        "p_high": got.right.interval[1],
        "samples": 12,
        "discarded_samples": 2,
    }


def test_samples_of_several_steps_are_added() -> None:
    sums = Calibration(Estimate(7, 10), Estimate(10, 12)) + Calibration(
        Estimate(1, 3), Estimate(3, 4)
    )
    assert sums == Calibration(Estimate(8, 13), Estimate(13, 16))


@pytest.mark.anyio
async def test_the_right_answer_may_be_known() -> None:
    got = await calibrate(drawer("aab-"), 4, right=Sample("b", "b"))
    assert got == Calibration(Estimate(1, 3), Estimate(3, 4))


@pytest.mark.anyio
async def test_answers_are_drawn_at_the_same_time_but_not_all() -> None:
    at_work = most = 0

    async def draw(_: int) -> Sample:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await anyio.lowlevel.checkpoint()
        at_work -= 1
        return Sample("a", "a")

    await calibrate(draw, 50)
    assert most == 10


def test_k_is_chosen_for_the_low_end_of_what_p_may_be() -> None:
    calibration = Calibration(Estimate(90, 100), Estimate(100, 125))
    low = calibration.right.interval[0]
    assert calibration.k_for(1023, 0.95) == smallest_k(low, 1023, 0.95) == 7
    assert smallest_k(0.9, 1023, 0.95) == 5
    plan = calibration.plan(1023, 0.95)
    assert plan.k == 7
    assert plan.draws_per_step == pytest.approx(7 / 0.8 / 0.8, rel=1e-4)


def test_a_target_is_missed_no_more_often_than_it_may_be_though_the_sample_is_small() -> None:
    """Over many calibrations of a worker with p = 0.9, the k chosen is too small in few."""
    random, needed, short = Random(3), smallest_k(0.9, 1000, 0.95), 0
    for _ in range(1000):
        hits = sum(random.random() < 0.9 for _ in range(100))
        sample = Calibration(Estimate(hits, 100), Estimate(100, 100))
        short += sample.k_for(1000, 0.95) < needed
    assert short <= 25


def test_answers_that_hardly_agree_give_no_k() -> None:
    with pytest.raises(
        RunError, match=r"only 12 of 20 answers count as right.*between 0\.39 and 0\.78"
    ):
        Calibration(Estimate(12, 20), Estimate(20, 20)).k_for(1, 0.95)


@pytest.mark.anyio
async def test_nothing_can_be_measured_without_an_answer_that_votes() -> None:
    with pytest.raises(RunError, match="none of 3 answers could vote"):
        await calibrate(drawer("---"), 3)

    async def fail(number: int) -> Sample:
        return Sample.failed(ModelError(f"gone {number}"))

    with pytest.raises(ModelError, match="gone 1"):
        await calibrate(fail, 3)

    async def spend(_: int) -> Sample:
        raise LimitError("spent")

    with pytest.raises(LimitError, match="spent"):
        await calibrate(spend, 3)


@pytest.mark.parametrize(("steps", "samples"), [(1, 20), (50, 50), (10**6, 100)])
def test_how_many_answers_are_usual(steps: int, samples: int) -> None:
    assert usual_samples(steps) == samples


def test_two_samples_are_combined_share_by_share() -> None:
    first = Calibration(Estimate(1, 2), Estimate(2, 4))
    second = Calibration(Estimate(3, 5), Estimate(5, 9))
    assert first + second == Calibration(Estimate(4, 7), Estimate(7, 13))
