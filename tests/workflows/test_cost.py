"""The static worst case: what it is for each type, and that no run exceeds it."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.scripted_world import World

from fast_agent.agents.events import ToolStarted
from fast_agent.cards.agent_config import AgentConfig, McpConnect, RequestParams, UsageLimits
from fast_agent.cards.card import Card
from fast_agent.config.settings import McpSettings, ServerSettings, Settings
from fast_agent.errors import FastAgentError
from fast_agent.models.script import Call, Say, Together
from fast_agent.workflows.cost import NOTHING, Bound, Cost, CostPlan
from fast_agent.workflows.plan import MAX_TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step

NOWHERE = Path("/nowhere")


def params(iterations: int | None = None, **limits: int) -> RequestParams:
    usage = UsageLimits(**limits) if limits else None
    return RequestParams(max_iterations=iterations, usage_limits=usage)


def cost_of(*configs: AgentConfig, given: Settings | None = None, max_depth: int = 8) -> Cost:
    """Return the worst case of the first card."""
    cards = {config.name: Card(config, f"{config.name}.md") for config in configs}
    plan = CostPlan(cards, given or Settings(), NOWHERE, max_depth=max_depth)
    return plan.of(configs[0].name)


A = AgentConfig(name="a", request_params=params(2))
B = AgentConfig(name="b", request_params=params(3))


@pytest.mark.spec("COST-1")
@pytest.mark.parametrize(
    ("config", "requests"),
    [
        (AgentConfig(name="top"), 3),
        (AgentConfig(name="top", request_params=params(4)), 4),
        (AgentConfig(name="top", request_params=params(4, max_requests=3)), 3),
        (AgentConfig(name="top", type="chain", sequence=("a", "b", "a")), 7),
        (AgentConfig(name="top", type="parallel", fan_out=("a", "a"), fan_in="b"), 7),
        (AgentConfig(name="top", type="router", agents=("a",)), 2),
        (
            AgentConfig(name="top", type="router", agents=("a", "b"), request_params=params(2)),
            5,
        ),
        (
            AgentConfig(
                name="top",
                type="evaluator_optimizer",
                generator="a",
                evaluator="b",
                max_refinements=2,
            ),
            3 * (2 + 2 * 3),
        ),
        (
            AgentConfig(
                name="top",
                type="orchestrator",
                agents=("a", "b"),
                plan_iterations=2,
                request_params=params(2),
            ),
            2 * 2 + MAX_TASKS * 3 + 2,
        ),
        (
            AgentConfig(name="top", type="orchestrator", agents=("a",), request_params=params(2)),
            5 * 2 + MAX_TASKS * 2 + 2,
        ),
        (
            AgentConfig(
                name="top",
                type="iterative_planner",
                agents=("a",),
                plan_iterations=1,
                request_params=params(1),
            ),
            1 + MAX_TASKS * 2 + 1,
        ),
        (
            AgentConfig(
                name="top", type="iterative_planner", agents=("a",), request_params=params(2)
            ),
            MAX_TASKS * 2 + MAX_TASKS * 2 + 2,
        ),
        (AgentConfig(name="top", type="MAKER", worker="b", max_samples=7), 21),
        (AgentConfig(name="top", type="MAKER", worker="b", max_samples=7, k="auto"), 27 * 3),
        (AgentConfig(name="top", type="chain", sequence=("a",), request_params=params(9)), 2),
        (AgentConfig(name="top", type="chain", sequence=("a", "away")), 2),
    ],
)
def test_a_turn_costs_at_most(config: AgentConfig, requests: int) -> None:
    assert cost_of(config, A, B) == Cost(Bound(requests), NOTHING)


@pytest.mark.spec("COST-1")
def test_children_are_bounded_by_the_tool_calls_there_may_be() -> None:
    limited = AgentConfig(name="top", agents=("a", "b"), request_params=params(4, max_tool_calls=5))
    assert cost_of(limited, A, B) == Cost(Bound(4 + 5 * 3), Bound(5))
    once = AgentConfig(name="top", agents=("a",), request_params=params(1))
    assert cost_of(once, A) == Cost(Bound(1), NOTHING)


@pytest.mark.spec("COST-1")
def test_a_limit_of_tool_calls_bounds_children_of_children() -> None:
    top = AgentConfig(name="top", agents=("mid",), request_params=params(4, max_tool_calls=5))
    mid = AgentConfig(name="mid", type="chain", sequence=("b", "low"))
    low = AgentConfig(name="low", agents=("a",), request_params=params(6))
    # Each of five calls is of `mid`: nothing else that one call can begin asks more.
    assert cost_of(top, mid, low, A, B) == Cost(Bound(4 + 5 * (3 + 6)), Bound(5))
    around = AgentConfig(
        name="around",
        type="chain",
        sequence=("top", "top"),
        request_params=params(max_tool_calls=5),
    )
    # The limit holds for both together, their own requests come without a call.
    assert cost_of(around, top, mid, low, A, B).requests == Bound(4 + 4 + 5 * (3 + 6))


@pytest.mark.spec("COST-2")
@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (AgentConfig(name="top", agents=("a",)), "usage_limits.max_tool_calls` of `top`"),
        (AgentConfig(name="top", shell=True), "usage_limits.max_tool_calls` of `top`"),
        (AgentConfig(name="top", type="smart"), "usage_limits.max_requests` of `top`"),
        (AgentConfig(name="top", servers=("time",)), "`sampling: false` of the server"),
        (
            AgentConfig(name="top", mcp_connect=(McpConnect(target="uvx time"),)),
            "`sampling: false` of the server",
        ),
        (
            AgentConfig(name="top", type="chain", sequence=("a", "open")),
            "max_tool_calls` of `open`",
        ),
    ],
)
def test_what_is_unbounded_names_the_setting(config: AgentConfig, setting: str) -> None:
    found = cost_of(config, A, AgentConfig(name="open", agents=("a",)))
    assert found.requests.most is None or found.calls.most is None
    assert any(setting in reason for reason in found.requests.reasons + found.calls.reasons)


@pytest.mark.spec("COST-2")
def test_limits_and_settings_bound_what_was_unbounded() -> None:
    config = AgentConfig(
        name="top", type="smart", request_params=params(max_requests=6, max_tool_calls=2)
    )
    assert cost_of(config) == Cost(Bound(6), Bound(2))
    server = ServerSettings(name="time", transport="stdio", command="time", sampling=False)
    given = Settings(
        mcp=McpSettings(servers={"time": server}), request_params=params(3, max_tool_calls=2)
    )
    asks = AgentConfig(name="top", servers=("time",))
    assert cost_of(asks, given=given) == Cost(Bound(3), Bound(2))


@pytest.mark.spec("COST-1")
def test_nobody_is_asked_below_the_deepest_nesting() -> None:
    links = [AgentConfig(name=f"c{at}", type="chain", sequence=(f"c{at + 1}",)) for at in range(3)]
    last = AgentConfig(name="c3", request_params=params(2))
    assert cost_of(*links, last, max_depth=3) == Cost(Bound(2))
    assert cost_of(*links, last, max_depth=2) == Cost(NOTHING)


class Adversary:
    """A model that uses what it is allowed to: seeded, and of good form only now and then."""

    def __init__(self, seed: int, most: int) -> None:
        self._chance = random.Random(seed)
        self._left = most

    def __call__(self, request: ModelRequest) -> Step | str:
        self._left -= 1
        chance = self._chance
        if self._left <= 0:
            return "enough"
        if request.output_schema is not None and chance.random() < 0.9:
            return self._structured(request.output_schema.schema)
        names = [tool.name for tool in request.tools] or ["nothing"]
        if chance.random() < 0.75:
            calls = [
                Call(chance.choice(names), {"message": f"do {chance.randrange(4)}"})
                for _ in range(chance.randint(1, 3))
            ]
            return Together(tuple(calls), Say("working"))
        return f"answer {chance.randrange(3)}"

    def _structured(self, schema: Any) -> str:
        known = schema["properties"]
        if "rating" in known:
            rating = self._chance.choice(["POOR", "FAIR"])
            return json.dumps({"rating": rating, "feedback": "", "needs_improvement": True,
                               "focus_areas": []})  # fmt: skip
        if "confidence" in known:
            agents = known["agent"]["enum"]
            return json.dumps({"agent": self._chance.choice(agents), "confidence": "high",
                               "reasoning": ""})  # fmt: skip
        whole = "steps" in known
        step = known["steps"]["items"]["properties"] if whole else known
        agents = step["tasks"]["items"]["properties"]["agent"]["enum"]
        tasks = [
            {"agent": self._chance.choice(agents), "description": f"task {number}"}
            for number in range(self._chance.randint(1, 3))
        ]
        one = {"description": "step", "tasks": tasks}
        return json.dumps({"steps": [one, one]} if whole else {**one, "is_complete": False})


@st.composite
def card_sets(draw: st.DrawFn) -> tuple[AgentConfig, ...]:
    """Draw cards of all types, each of which asks only cards after it."""
    count = draw(st.integers(2, 6))
    cards: list[AgentConfig] = []
    for at in reversed(range(count)):
        below = [card.name for card in cards]
        cards.insert(0, _card(draw, f"c{at}", below))
    return tuple(cards)


def _card(draw: st.DrawFn, name: str, below: Sequence[str]) -> AgentConfig:
    limits = draw(
        st.none() | st.builds(UsageLimits, max_requests=st.none() | st.integers(1, 30),
                              max_tool_calls=st.none() | st.integers(0, 6))
    )  # fmt: skip
    asked = RequestParams(max_iterations=draw(st.none() | st.integers(1, 4)), usage_limits=limits)
    kinds = ["agent"]
    if below:
        kinds += ["agent", "chain", "parallel", "router", "evaluator_optimizer", "orchestrator"]
        kinds += ["iterative_planner", "MAKER"]
    kind = draw(st.sampled_from(kinds))
    fields: dict[str, Any] = {}
    if below:
        some = tuple(draw(st.lists(st.sampled_from(below), min_size=1, max_size=3)))
        one = st.sampled_from(below)
        different = tuple(dict.fromkeys(some))
        fields = {
            "agent": {"agents": different},
            "chain": {"sequence": some},
            "parallel": {"fan_out": some, "fan_in": draw(st.none() | one)},
            "router": {"agents": different},
            "evaluator_optimizer": {
                "generator": draw(one),
                "evaluator": draw(one),
                "max_refinements": draw(st.integers(0, 2)),
            },
            "orchestrator": {
                "agents": different,
                "plan_type": draw(st.sampled_from(["full", "iterative"])),
                "plan_iterations": draw(st.integers(1, 2)),
            },
            "iterative_planner": {
                "agents": different,
                "plan_iterations": draw(st.integers(1, 2)),
            },
            "MAKER": {
                "worker": draw(one),
                "k": draw(st.integers(1, 2)),
                "max_samples": draw(st.integers(2, 5)),
            },
        }[kind]
    return AgentConfig(name=name, type=kind, request_params=asked, **fields)  # type: ignore[arg-type]


async def _play(cards: Sequence[AgentConfig], seed: int) -> tuple[int, int]:
    """Run one turn of the first card; returns the requests and the tool calls there were."""
    world = World(plays={card.name: Adversary(seed + at, 60) for at, card in enumerate(cards)})
    async with world.runtime(*cards) as runtime:
        with suppress(FastAgentError):
            await runtime.agent(cards[0].name).generate("go")
    calls = sum(isinstance(event, ToolStarted) for event in world.events)
    return len(world.seen), calls


@pytest.mark.spec("COST-3")
@settings(max_examples=60)
@given(cards=card_sets(), seed=st.integers(0, 10**6))
def test_no_run_exceeds_the_worst_case(cards: tuple[AgentConfig, ...], seed: int) -> None:
    cost = cost_of(*cards)
    requests, calls = anyio.run(_play, cards, seed)
    # A vote that cannot be won is refused before anybody is asked.
    assert requests or any(card.type == "MAKER" for card in cards)
    assert cost.requests.most is None or requests <= cost.requests.most
    assert cost.calls.most is None or calls <= cost.calls.most


@pytest.mark.spec("COST-3")
def test_the_worst_case_is_reached() -> None:
    """A bound nobody comes near would be no use: each of these is met exactly."""

    def calls(request: ModelRequest) -> Step | str:
        return Call(request.tools[0].name if request.tools else "nothing", {"message": "go"})

    async def play(*cards: AgentConfig) -> tuple[int, int]:
        world = World(plays={card.name: calls for card in cards})
        async with world.runtime(*cards) as runtime:
            with suppress(FastAgentError):
                await runtime.agent(cards[0].name).generate("go")
        made = sum(isinstance(event, ToolStarted) for event in world.events)
        return len(world.seen), made

    chain = AgentConfig(name="top", type="chain", sequence=("a", "b", "a"))
    parent = AgentConfig(name="top", agents=("b",), request_params=params(3, max_tool_calls=2))
    votes = AgentConfig(name="top", type="MAKER", worker="a", k=2, max_samples=2)
    for cards in ((chain, A, B), (parent, B), (votes, A)):
        cost = cost_of(*cards)
        assert anyio.run(play, *cards) == (cost.requests.most, cost.calls.most)
