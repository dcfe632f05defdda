"""Plan: the k a task needs, and what it will cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.workflows.maker.odds import smallest_k, task_success, votes_per_step

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


@dataclass(frozen=True, slots=True)
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
    """Say what to expect of a given k; see `make_plan`."""
    if not 0 < valid <= 1:
        raise RunError(
            f"a share of {valid:g} valid answers leaves nothing to vote on",
            hint="give a number above 0, up to 1",
        )
    each = votes_per_step(p, k) / valid
    return Plan(k, task_success(p, k, steps), each, each * steps)
