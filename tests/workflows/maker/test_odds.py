"""The mathematics of votes, against the paper's table and against the definition."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import RunError
from fast_agent.workflows.maker.calibration import (
    against,
    make_plan,
    plan_with,
    smallest_k,
    task_success,
    votes_per_step,
)

HANOI_20 = 2**20 - 1
"""Moves of twenty disks."""

PAPER = (
    ("gpt-4.1-nano", 0.3571, 29),
    ("gpt-4.1-mini, temperature 1", 0.0040, 4),
    ("gpt-4.1-mini, temperature 0.1", 0.0022, 3),
    ("o3-mini, low effort", 0.0018, 3),
    ("haiku-4.5", 0.1839, 12),
    ("gpt-oss-20B", 0.0358, 6),
    ("qwen3", 0.2342, 15),
    ("deepseek-v3.1", 0.0569, 6),
    ("kimi-k2", 0.0393, 6),
)
"""The models that can be voted with, their measured error rates and their k for 20 disks at 95 %
(arXiv 2511.09030, section 4.3)."""

PS = st.floats(0.51, 0.9999)


@pytest.mark.parametrize(("model", "error", "k"), PAPER)
@pytest.mark.spec("MAKER-6")
def test_the_k_of_the_papers_table(model: str, error: float, k: int) -> None:
    assert smallest_k(1 - error, HANOI_20, 0.95) == k


@given(PS, st.integers(1, 10**7), st.floats(0.01, 0.9999))
def test_k_is_the_smallest_that_reaches_the_target(p: float, steps: int, target: float) -> None:
    k = smallest_k(p, steps, target)
    # Beside equality the last digit of a floating point number may go either way.
    assert task_success(p, k, steps) >= target * (1 - 1e-9)
    assert k == 1 or task_success(p, k - 1, steps) < target * (1 + 1e-9)


@pytest.mark.parametrize("p", ["0.55", "0.6", "0.75", "0.9", "0.99"])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_success_and_length_of_a_vote_solve_the_walk_exactly(p: str, k: int) -> None:
    """The margin walks from 0 to k or -k; both figures fulfil its equations at every margin."""
    right = Fraction(p)
    wrong = 1 - right
    ratio = wrong / right
    width = 2 * k

    def success(margin: int) -> Fraction:
        return (1 - ratio ** (k + margin)) / (1 - ratio**width)

    def length(margin: int) -> Fraction:
        return (width * success(margin) - (k + margin)) / (right - wrong)

    for margin in range(1 - k, k):
        one_on = right * success(margin + 1) + wrong * success(margin - 1)
        assert success(margin) == one_on
        assert length(margin) == 1 + right * length(margin + 1) + wrong * length(margin - 1)
    assert (success(-k), success(k), length(-k), length(k)) == (0, 1, 0, 0)
    assert task_success(float(p), k, 1) == pytest.approx(float(success(0)), rel=1e-12)
    assert votes_per_step(float(p), k) == pytest.approx(float(length(0)), rel=1e-12)


def test_many_steps_lose_no_digits() -> None:
    with localcontext() as context:
        context.prec = 60
        p = Decimal("0.9978")
        exact = (1 / (1 + ((1 - p) / p) ** 3)) ** HANOI_20
    assert task_success(0.9978, 3, HANOI_20) == pytest.approx(float(exact), rel=1e-12)


def test_answers_that_are_always_right_need_one_vote() -> None:
    assert smallest_k(1.0, HANOI_20, 0.999) == 1
    assert (task_success(1.0, 1, 1), votes_per_step(1.0, 3)) == (1, 3)


@pytest.mark.spec("MAKER-6")
@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_a_target_that_lies_at_a_k_is_not_lost_to_rounding(steps: int) -> None:
    """The quotient of the logarithms is just beside a whole number at each of these."""
    for percent, wanted in product(range(51, 100), range(2, 12)):
        p = percent / 100
        target = (1 + against(p, wanted)) ** -steps
        if not 1e-300 < target < 1 - 1e-6:
            continue
        k = smallest_k(p, steps, target)
        allowed = math.expm1(-math.log(target) / steps)
        assert abs(k - wanted) <= 1
        assert against(p, k) <= allowed < against(p, k - 1)


def test_a_modest_target_needs_one_vote() -> None:
    assert smallest_k(0.9, 1, 0.5) == 1


@pytest.mark.parametrize(
    ("p", "steps", "target", "expected"),
    [
        (
            0.5,
            10,
            0.95,
            "no vote can be planned where an answer is right with a probability of 0.5",
        ),
        (
            1.2,
            10,
            0.95,
            "no vote can be planned where an answer is right with a probability of 1.2",
        ),
        (
            float("nan"),
            10,
            0.95,
            "no vote can be planned where an answer is right with a probability of nan",
        ),
        (0.9, 0, 0.95, "a task cannot have 0 steps"),
        (0.9, 10, 1.0, "no vote can aim at a success of 1"),
        (0.9, 10, 0.0, "no vote can aim at a success of 0"),
    ],
)
def test_what_no_vote_can_do(p: float, steps: int, target: float, expected: str) -> None:
    with pytest.raises(RunError) as caught:
        smallest_k(p, steps, target)
    assert caught.value.message == expected
    assert caught.value.hint


def test_a_plan_of_the_papers_task() -> None:
    plan = make_plan(0.9978, HANOI_20, 0.95)
    assert plan.k == 3
    assert plan.p_full == pytest.approx(0.98882, abs=1e-5)
    assert plan.draws_per_step == pytest.approx(3.01326, abs=1e-5)
    assert plan.draws_total == pytest.approx(plan.draws_per_step * HANOI_20)
    assert list(plan.to_json()) == ["k", "p_full", "draws_per_step", "draws_total"]


def test_flagged_answers_make_a_plan_longer() -> None:
    plan = make_plan(0.9, 100, 0.95)
    assert make_plan(0.9, 100, 0.95, valid=0.5).draws_total == pytest.approx(2 * plan.draws_total)
    assert plan_with(plan.k, 0.9, 100) == plan


@pytest.mark.parametrize("valid", [0.0, -0.1, 1.1])
def test_a_plan_needs_valid_answers(valid: float) -> None:
    with pytest.raises(RunError, match="valid answers leaves nothing to vote on"):
        make_plan(0.9, 100, 0.95, valid=valid)
