"""Odds: how sure a vote is, and how many answers it takes.

The model is that of the paper (arXiv 2511.09030): a vote on one step is a race between the right
answer, drawn with probability p, and one wrong answer, drawn with 1 - p, until one of them is `k`
votes ahead. It is a gambler's ruin from the middle of a field of width 2k. Wrong answers that
differ from each other only help, so real votes do better.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


def against(p: float, k: int) -> float:
    """Return r = ((1 - p) / p) ** k, the odds against the right answer.

    Args:
        p: Probability that one answer is right, above 0.5.
        k: Votes the winner must be ahead by.
    """
    _check_p(p)
    return ((1 - p) / p) ** k


def step_success(p: float, k: int) -> float:
    """Return the probability that a vote ends with the right answer."""
    return 1 / (1 + against(p, k))


def task_success(p: float, k: int, steps: int) -> float:
    """Return the probability that the votes on all of `steps` steps do."""
    return math.exp(-steps * math.log1p(against(p, k)))


def votes_per_step(p: float, k: int) -> float:
    """Return the expected number of votes until a step is decided."""
    r = against(p, k)
    return k / (2 * p - 1) * (1 - r) / (1 + r)


def smallest_k(p: float, steps: int, target: float) -> int:
    """Return the smallest k with which all steps are right with the probability wanted.

    Args:
        p: Probability that one answer is right, above 0.5.
        steps: How many steps the task has, from 1.
        target: Probability that all are right, between 0 and 1.

    Raises:
        RunError: No k can do it, or a number is out of its range.
    """
    _check_p(p)
    check_steps(steps)
    check_target(target)
    if p == 1:
        return 1
    # target ** (-1 / steps) - 1, without losing its digits where steps are many.
    allowed = math.expm1(-math.log(target) / steps)
    k = max(1, math.ceil(math.log(allowed) / math.log((1 - p) / p)))
    # The quotient may be off a whole number by a rounding error.
    while k > 1 and against(p, k - 1) <= allowed:
        k -= 1
    while against(p, k) > allowed:
        k += 1
    return k


def check_steps(steps: int) -> None:
    """Raise RunError unless a task can have so many steps."""
    if steps < 1:
        raise RunError(f"a task cannot have {steps} steps", hint="pass a whole number from 1")


def check_target(target: float) -> None:
    """Raise RunError unless a vote can aim at this probability of success."""
    if not 0 < target < 1:
        raise RunError(
            f"no vote can aim at a success of {target:g}",
            hint="pass a number between 0 and 1, such as 0.95",
        )


def _check_p(p: float) -> None:
    if not 0.5 < p <= 1:
        raise RunError(
            f"no vote can be planned where an answer is right with a probability of {p:g}",
            hint="more than half of the answers must be right, and 1 is the most; make the step"
            " smaller or take a better model",
        )


@frozen
class Plan:
    """How a task of many steps is voted on.

    Args:
        k: Votes the winner of a step must be ahead by.
        p_full: Probability that all steps are right.
        draws_per_step: Answers expected to be asked for in one step, flagged ones included.
        draws_total: The same for all steps.
    """

    k: int
    p_full: float
    draws_per_step: float
    draws_total: float

    def to_json(self) -> JsonObject:
        """Return it as a JSON object."""
        return {
            "k": self.k,
            "p_full": self.p_full,
            "draws_per_step": self.draws_per_step,
            "draws_total": self.draws_total,
        }


def make_plan(p: float, steps: int, target: float, *, valid: float = 1.0) -> Plan:
    """Choose the smallest k that reaches a target, and say what to expect of it.

    Args:
        p: Probability that an answer is right, among those that are not flagged; above 0.5.
        steps: How many steps the task has, from 1.
        target: Probability wanted that all steps are right, between 0 and 1.
        valid: Share of answers that are not flagged, above 0.

    Raises:
        RunError: No k can do it, or a number is out of its range.
    """
    k = smallest_k(p, steps, target)
    return plan_with(k, p, steps, valid=valid)


def plan_with(k: int, p: float, steps: int, *, valid: float = 1.0) -> Plan:
    """Return the expectations for a given k; see `make_plan`."""
    if not 0 < valid <= 1:
        raise RunError(
            f"a share of {valid:g} valid answers leaves nothing to vote on",
            hint="pass a number above 0, up to 1",
        )
    each = votes_per_step(p, k) / valid
    return Plan(k, task_success(p, k, steps), each, each * steps)
