"""Usage limits of any parent bound everything below it, exactly, whatever runs at the same time."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.workflows.scripted_world import World, agent, card

from fast_agent.agents.events import TurnFinished, TurnStarted
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import FastAgentError
from fast_agent.messages.history import check_validity
from fast_agent.models.model import Usage
from fast_agent.models.script import Call, Say, Together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step

pytestmark = pytest.mark.anyio

COST = 10
"""Tokens of each request."""


@dataclass(frozen=True)
class Node:
    """An agent of a tree."""

    name: str
    kind: str
    below: tuple[Node, ...]

    def nodes(self) -> Iterator[Node]:
        yield self
        for node in self.below:
            yield from node.nodes()

    def config(self) -> AgentConfig:
        names = tuple([node.name for node in self.below])
        match self.kind:
            case "chain":
                return card(self.name, "chain", sequence=names)
            case "parallel":
                return card(self.name, "parallel", fan_out=names)
            case "router":
                return card(self.name, "router", agents=names)
            case "orchestrator":
                return card(self.name, "orchestrator", agents=names, plan_iterations=2)
            case "iterative_planner":
                return card(self.name, "iterative_planner", agents=names, plan_iterations=3)
            case "evaluator_optimizer":
                return card(
                    self.name,
                    "evaluator_optimizer",
                    generator=names[0],
                    evaluator=names[1],
                    max_refinements=1,
                )
            case "MAKER":
                return card(self.name, "MAKER", worker=names[0], k=2, max_samples=4)
            case _:
                return agent(self.name, agents=names)

    def answer(self, request: ModelRequest) -> Step | str:
        """Return what the model of the agent says: it has every agent below it do something."""
        usage = Usage(COST - 1, 1, requests=1)
        names = [node.name for node in self.below]
        text = request.messages[-1].text
        shape = None if request.output_schema is None else request.output_schema.name
        tasks = [{"agent": name, "description": "work"} for name in names * 2]
        if shape == "route":
            said = {"agent": names[0], "confidence": "high", "reasoning": "the first"}
        elif shape == "plan":
            said = {"steps": [{"description": "all", "tasks": tasks}]}
        elif shape == "next_step":
            said = {"description": "all", "tasks": tasks, "is_complete": "<result" in text}
        elif shape == "rating":
            said = {
                "rating": "POOR",
                "feedback": "no",
                "needs_improvement": True,
                "focus_areas": ["all"],
            }
        elif self.kind == "agent" and names and not request.messages[-1].tool_results:
            calls = [Call(f"agent__{name}", {"message": "work"}) for name in names * 2]
            return Together(tuple(calls), Say("", usage=usage), delay=1e-6)
        else:
            return Say(self.name, usage=usage, delay=1e-6)
        return Say(json.dumps(said), usage=usage, delay=1e-6)


Shape: TypeAlias = "tuple[str, list[Shape]] | None"
"""A tree without names: the type of an agent, and what is below it; None is an agent alone."""


def _named(drawn: Shape) -> Node:
    """Make a tree of what was drawn, with a name of its own for every agent."""
    numbers = count(1)

    def make(shape: Shape) -> Node:
        name = f"a{next(numbers)}"
        if shape is None:
            return Node(name, "agent", ())
        kind, inner = shape
        below = [make(one) for one in inner]
        if kind == "evaluator_optimizer":
            below = [below[0], Node(f"a{next(numbers)}", "agent", ())]
        elif kind == "MAKER":
            below = [Node(f"a{next(numbers)}", "agent", ())]
        return Node(name, kind, tuple(below))

    return make(drawn)


KINDS = (
    "agent",
    "chain",
    "parallel",
    "router",
    "evaluator_optimizer",
    "orchestrator",
    "iterative_planner",
    "MAKER",
)
TREES = st.recursive(
    st.none(),
    lambda inner: st.tuples(st.sampled_from(KINDS), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=5,
).map(_named)


def bounded(node: Node, limits: UsageLimits | None) -> AgentConfig:
    params = None if limits is None else RequestParams(usage_limits=limits)
    return replace(node.config(), request_params=params)


async def played(tree: Node, where: Node | None, limits: UsageLimits | None) -> tuple[World, Usage]:
    """Run a tree with limits at one of its agents; returns what the top used."""
    world = World({node.name: node.answer for node in tree.nodes()})
    configs = [bounded(node, limits if node is where else None) for node in tree.nodes()]
    async with world.runtime(*configs) as runtime:
        top = runtime.agent(tree.name)
        try:
            await top.send("go")
        except FastAgentError:
            if where is None:
                raise
        for node in tree.nodes():
            assert check_validity(runtime.agent(node.name).history) == []
        used = top.tree_usage
        assert used == runtime.usage
        assert used.requests == len(world.seen)
    return world, used


def turns_of(world: World, node: Node) -> list[Usage]:
    """Return what each turn of an agent used with all below it."""
    agents = {
        event.origin.turn_id: event.origin.agent
        for event in world.events
        if isinstance(event, TurnStarted)
    }
    return [
        event.tree_usage
        for event in world.events
        if isinstance(event, TurnFinished)
        and event.origin.agent == node.name
        # The turns of a workflow's own model are part of the workflow's.
        and agents.get(event.origin.parent_call_id or "") != node.name
    ]


@pytest.mark.spec("TURN-9", "TREE-1")
@settings(max_examples=40)
@given(TREES, st.integers(1, 40))
async def test_max_requests_at_the_top_is_used_up_and_never_passed(tree: Node, most: int) -> None:
    _, free = await played(tree, None, None)
    _, used = await played(tree, tree, UsageLimits(max_requests=most))
    assert used.requests == min(most, free.requests)


@pytest.mark.spec("TURN-9", "TREE-1")
@settings(max_examples=40)
@given(TREES, st.integers(1, 12))
async def test_max_tool_calls_at_the_top_is_used_up_and_never_passed(tree: Node, most: int) -> None:
    _, free = await played(tree, None, None)
    _, used = await played(tree, tree, UsageLimits(max_tool_calls=most))
    assert used.tool_calls == min(most, free.tool_calls)


@pytest.mark.spec("TURN-9", "TREE-1")
@settings(max_examples=40)
@given(TREES, st.integers(1, 40 * COST))
async def test_max_total_tokens_at_the_top_is_passed_by_the_last_request_alone(
    tree: Node, most: int
) -> None:
    _, free = await played(tree, None, None)
    _, used = await played(tree, tree, UsageLimits(max_total_tokens=most))
    needed = -(-most // COST)
    assert used.requests == min(needed, free.requests)
    assert used.total_tokens == used.requests * COST


@pytest.mark.spec("TURN-9", "TREE-1")
@settings(max_examples=40)
@given(TREES, st.data())
async def test_limits_anywhere_hold_for_all_that_is_below(tree: Node, data: st.DataObject) -> None:
    where = data.draw(st.sampled_from(list(tree.nodes())))
    kind, most = data.draw(
        st.sampled_from([("requests", 3), ("requests", 7), ("calls", 1), ("tokens", 45)])
    )
    limits = UsageLimits(
        max_requests=most if kind == "requests" else None,
        max_tool_calls=most if kind == "calls" else None,
        max_total_tokens=most if kind == "tokens" else None,
    )
    world, _ = await played(tree, where, limits)
    turns = turns_of(world, where)
    names = {node.name for node in where.nodes()}
    assert sum([used.requests for used in turns]) == len(
        [seen for seen in world.seen if seen.agent in names]
    )
    for used in turns:
        assert kind != "requests" or used.requests <= most
        assert kind != "calls" or used.tool_calls <= most
        assert kind != "tokens" or used.total_tokens < most + COST


@pytest.mark.spec("TURN-9", "TREE-1")
@pytest.mark.parametrize("kind", KINDS)
async def test_each_type_bounds_what_it_starts(kind: str) -> None:
    below: Shape = ("agent", [None, None])
    tree = _named((kind, [below, None, None]))
    _, free = await played(tree, None, None)
    assert free.requests >= 2
    for most in range(1, free.requests + 1):
        _, used = await played(tree, tree, UsageLimits(max_requests=most))
        assert used.requests == most
