"""Planners and evaluators that are cancelled, fail or reach a limit at any of their requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from anyio import CancelScope
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.scripted_world import World, agents, card

from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import FastAgentError, LimitError, ModelError
from fast_agent.messages.history import check_validity
from fast_agent.models.script import Fail, Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.agent import Agent
    from fast_agent.cards.agent_config import AgentConfig, HistoryTarget
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step
    from fast_agent.runtime.runtime import Runtime

pytestmark = pytest.mark.anyio

NAMES = ("boss", "ann", "bob")
TASKS = [{"agent": name, "description": "work"} for name in ("ann", "bob", "ann")]
KINDS = st.sampled_from(["full", "iterative", "iterative_planner", "evaluator_optimizer"])
TARGETS = st.sampled_from(["none", "child", "orchestrator", "cumulative"])
LAST = 40
"""More requests than any of these turns makes."""


def cards(kind: str, target: HistoryTarget) -> list[AgentConfig]:
    if kind == "evaluator_optimizer":
        boss = card("boss", kind, generator="ann", evaluator="bob", max_refinements=2)
    elif kind == "iterative_planner":
        boss = card("boss", kind, agents=("ann", "bob"), plan_iterations=3)
    else:
        boss = card("boss", "orchestrator", agents=("ann", "bob"), plan_type=kind, use_history=True)
    return [replace(boss, history_merge_target=target), *agents(("ann", "bob"))]


def answer(request: ModelRequest) -> Step:
    """Play every part: plan two steps, rate as poor, else work."""
    match request.output_schema and request.output_schema.name:
        case "plan":
            step = {"description": "", "tasks": TASKS}
            said = {"steps": [step, step]}
        case "next_step":
            said = {"tasks": TASKS, "is_complete": 'step="1"' in request.messages[-1].text}
        case "rating":
            said = {"rating": "POOR", "feedback": "no"}
        case _:
            return Say("done", delay=1e-6)
    return Say(json.dumps(said), delay=1e-6)


class Interrupted:
    """Plays every part, and does something else at one of the requests."""

    def __init__(self, at: int, instead: Callable[[], Step | None]) -> None:
        self.count = 0
        self._at = at
        self._instead = instead

    def __call__(self, request: ModelRequest) -> Step:
        self.count += 1
        step = self._instead() if self.count == self._at else None
        return answer(request) if step is None else step


async def problem_of(agent: Agent) -> FastAgentError | None:
    """Run a turn; returns what it fails with."""
    try:
        await agent.send("x")
    except FastAgentError as error:
        return error
    return None


def see_histories(runtime: Runtime) -> None:
    for name in NAMES:
        assert check_validity(runtime.agent(name).history) == []


@settings(max_examples=60)
@given(KINDS, TARGETS, st.integers(1, LAST))
async def test_cancelled_at_any_request_all_histories_are_valid(
    kind: str, target: HistoryTarget, at: int
) -> None:
    world = World()
    with CancelScope() as scope:
        world.plays = dict.fromkeys(NAMES, Interrupted(at, scope.cancel))
        async with world.runtime(*cards(kind, target)) as runtime:
            try:
                await runtime.agent("boss").send("x")
            finally:
                see_histories(runtime)
    assert scope.cancelled_caught == (len(world.seen) >= at)


@settings(max_examples=60)
@given(KINDS, TARGETS, st.integers(1, LAST))
async def test_failed_at_any_request_it_answers_or_says_why(
    kind: str, target: HistoryTarget, at: int
) -> None:
    world = World(dict.fromkeys(NAMES, Interrupted(at, lambda: Fail("line cut"))))
    async with world.runtime(*cards(kind, target)) as runtime:
        boss = runtime.agent("boss")
        problem = await problem_of(boss)
        if problem is None:
            assert [one.text for one in boss.history[1:2]] in ([], ["done"])
        else:
            assert isinstance(problem, ModelError)
            assert problem.message == "line cut"
            assert len(boss.history) == 0
        see_histories(runtime)


@settings(max_examples=60)
@given(KINDS, TARGETS, st.integers(1, LAST))
async def test_stopped_by_a_limit_at_any_request_it_can_be_asked_again(
    kind: str, target: HistoryTarget, most: int
) -> None:
    boss, *others = cards(kind, target)
    limits = RequestParams(usage_limits=UsageLimits(max_requests=most))
    world = World(dict.fromkeys(NAMES, answer))
    async with world.runtime(replace(boss, request_params=limits), *others) as runtime:
        for _ in range(2):
            problem = await problem_of(runtime.agent("boss"))
            if problem is not None:
                assert isinstance(problem, LimitError)
                assert len(world.seen) == most
            see_histories(runtime)
    assert len(world.seen) <= most
