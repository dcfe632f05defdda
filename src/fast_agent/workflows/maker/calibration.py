"""Calibration: how often a worker is right, measured before its answers are voted on.

The odds say how sure a vote is, and how many answers it takes.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from anyio import Semaphore, create_task_group

from fast_agent.config.settings import CALIBRATION_SAMPLES
from fast_agent.errors import FastAgentError, RunError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject
    from fast_agent.workflows.maker.race import Draw, Sample


def against(p: float, k: int) -> float:
    """Return r = ((1 - p) / p) ** k, the odds against the right answer.

    Args:
        p: Probability that one answer is right, above 0.5.
        k: Votes the winner must be ahead by.
    """
    _check_p(p)
    return ((1 - p) / p) ** k


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
            hint="more than half of the answers must be right, and 1 is the maximum; make the step"
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


AT_ONCE = 10
"""How many answers are drawn at the same time."""
MIN_SAMPLES, MAX_SAMPLES = 20, CALIBRATION_SAMPLES
"""How many answers are drawn where nothing is said: one a step of the task, between these."""


def usual_samples(steps: int) -> int:
    """Return how many answers to measure on for a task of so many steps.

    The measurement shall not cost more than the task, and need not be finer than it is good for.
    """
    return min(MAX_SAMPLES, max(MIN_SAMPLES, steps))


@frozen
class Calibration:
    """What a sample of answers showed.

    Args:
        right: How many of the answers that vote are right.
        valid: How many of all answers vote.
    """

    right: Estimate
    valid: Estimate

    def __add__(self, other: Calibration) -> Calibration:
        """Combine two samples, such as those of two steps of one task."""
        return Calibration(self.right + other.right, self.valid + other.valid)

    def k_for(self, steps: int, target: float) -> int:
        """Choose k so that the target is reached even at the low end of what p may be.

        The number of votes grows with the logarithm of what is asked only, so being sure costs
        little; trusting the middle of a small sample would miss the target half the time.

        Args:
            steps: How many steps the task has, from 1.
            target: Probability wanted that all are right, between 0 and 1.

        Raises:
            RunError: The answers agree too little for any k.
        """
        low, high = self.right.interval
        if low <= 0.5:
            raise RunError(
                f"only {self.right.hits} of {self.right.trials} answers count as right, so p is"
                f" between {low:.2f} and {high:.2f}; no vote is reliable unless that whole range is"
                " above 0.5",
                hint="raise `calibration_samples`, make the step smaller, or take a better model",
            )
        return smallest_k(low, steps, target)

    def plan(self, steps: int, target: float) -> Plan:
        """Choose k, and say what to expect of it where p is what was measured.

        Raises:
            RunError: The answers agree too little for any k.
        """
        k = self.k_for(steps, target)
        return plan_with(k, self.right.share, steps, valid=self.valid.share)

    def to_json(self) -> JsonObject:
        """Return it as a JSON object."""
        low, high = self.right.interval
        return {
            "p": self.right.share,
            "p_low": low,
            "p_high": high,
            "samples": self.valid.trials,
            "discarded_samples": self.valid.trials - self.valid.hits,
        }


async def calibrate(draw: Draw, samples: int, *, right: Sample | None = None) -> Calibration:
    """Draw a sample of answers and count those that are right.

    Args:
        draw: Draws an answer; called for several at once.
        samples: How many answers are drawn, from 1.
        right: The right answer; None takes the most frequent answer for it.

    Raises:
        RunError: No answer could vote.
        FastAgentError: What `draw` raised, or why every draw failed.
    """
    drawn: list[Sample] = []
    places = Semaphore(min(AT_ONCE, samples))
    problem: FastAgentError | None = None

    async def one(number: int) -> None:
        nonlocal problem
        async with places:
            try:
                drawn.append(await draw(number))
            except FastAgentError as error:
                problem = problem or error
                group.cancel_scope.cancel()

    async with create_task_group() as group:
        for number in range(1, samples + 1):
            group.start_soon(one, number)
    if problem is not None:
        raise problem
    return _counted(drawn, right)


def _counted(drawn: list[Sample], right: Sample | None) -> Calibration:
    votes = Counter([sample.key for sample in drawn if sample.flag is None])
    if not votes:
        failures = [sample.failure for sample in drawn if sample.failure is not None]
        if len(failures) == len(drawn):
            raise failures[0]
        raise RunError(
            f"none of {len(drawn)} answers could vote",
            hint="change the instruction of the worker, or `red_flag_max_length`",
        )
    hits = votes.most_common(1)[0][1] if right is None else votes[right.key]
    return Calibration(Estimate(hits, votes.total()), Estimate(votes.total(), len(drawn)))


_Z = 1.959963984540054
"""Standard deviations around the middle of a normal distribution that hold 95 % of it."""


@frozen
class Estimate:
    """A share seen in a sample.

    Args:
        hits: How often it happened.
        trials: How often it could have; at least once.
    """

    hits: int
    trials: int

    def __add__(self, other: Estimate) -> Estimate:
        """Combine two samples."""
        return Estimate(self.hits + other.hits, self.trials + other.trials)

    @property
    def share(self) -> float:
        """How often it happened in the sample."""
        return self.hits / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence, by Wilson's score.

        It stays inside 0 to 1, and is honest about a sample in which all agreed.
        """
        n, z2 = self.trials, _Z * _Z
        middle = (self.share + z2 / (2 * n)) / (1 + z2 / n)
        spread = math.sqrt(self.share * (1 - self.share) / n + z2 / (4 * n * n))
        half = _Z * spread / (1 + z2 / n)
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        high = 1.0 if self.hits == n else min(1.0, middle + half)
        return low, high
