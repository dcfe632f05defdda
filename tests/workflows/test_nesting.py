"""Any type inside any other, whatever fails or is cancelled: histories stay valid everywhere."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workflows.scripted_world import World, agent, card

from fast_agent import FastAgent
from fast_agent.cards.fields import CARD_TYPES
from fast_agent.errors import CardError, FastAgentError
from fast_agent.messages.history import check_validity
from fast_agent.models.script import Call, Fail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.cards.agent_config import CardType
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step
    from fast_agent.runtime.runtime import Runtime

TYPES = tuple(one for one in CARD_TYPES if one != "smart")
RATING = json.dumps(
    {"rating": "GOOD", "feedback": "", "needs_improvement": False, "focus_areas": []}
)
NOTHING = json.dumps({"description": "", "tasks": [], "is_complete": True})


class Tree:
    """Cards that form a random tree of workflows, over a few agents that several of them use.

    Args:
        kinds: The types, from the root down; each is the first member of the one before it.
        seed: Seed of everything else.
        failing: Whether one of the agents always fails.
    """

    def __init__(self, kinds: list[CardType], seed: int, *, failing: bool) -> None:
        self._random = random.Random(seed)
        self._numbers = count()
        self._failing = failing
        self.members: dict[str, tuple[str, ...]] = {}
        self.configs = [agent(name) for name in ("ann", "bob", "cid")]
        below = "ann"
        for kind in reversed(kinds):
            below = self._node(kind, below)
        self.root = below

    def _node(self, kind: CardType, below: str) -> str:
        name = f"{kind}-{next(self._numbers)}"
        others = self._random.choices(["ann", "bob", "cid"], k=self._random.randint(1, 2))
        members = tuple(dict.fromkeys([below, *others]))
        self.members[name] = members
        self.configs.append(card(name, kind, **self._fields(kind, members)))
        return name

    def _fields(self, kind: CardType, members: tuple[str, ...]) -> dict[str, object]:
        flag = self._random.choice([True, False])
        match kind:
            case "chain":
                return {"sequence": members, "cumulative": flag}
            case "parallel":
                return {"fan_out": members, "fan_in": members[0] if flag else None}
            case "evaluator_optimizer":
                return {"generator": members[0], "evaluator": members[-1], "max_refinements": 1}
            case "orchestrator":
                return {"agents": members, "plan_type": "full" if flag else "iterative"}
            case "MAKER":
                return {"worker": members[0], "k": 1, "max_samples": 3}
            case "router":
                return {"agents": members, "use_history": flag}
            case _:
                return {"agents": members}

    def play(self, name: str) -> Callable[[ModelRequest], Step | str]:
        """Return what plays an agent or the model of a workflow."""
        members = self.members.get(name, ())

        def answer(request: ModelRequest) -> Step | str:
            shape = request.output_schema
            last = request.messages[-1]
            if self._failing and name == "bob":
                return Fail("always")
            if shape is not None and shape.name == "route":
                return json.dumps({"agent": members[0], "confidence": "low", "reasoning": "so"})
            if shape is not None and shape.name in {"plan", "next_step"}:
                task = {"agent": members[0], "description": "do it"}
                step = {"description": "all", "tasks": [task]}
                if shape.name == "plan":
                    return json.dumps({"steps": [step]})
                done = "<result" in last.text
                return NOTHING if done else json.dumps({**step, "is_complete": True})
            if members and request.tools and not last.tool_results:
                return Call(f"agent__{members[0]}", {"message": "do it"})
            return RATING if shape is not None else "done"

        return answer


def world_of(tree: Tree) -> World:
    return World({config.name: tree.play(config.name) for config in tree.configs})


def assert_valid(runtime: Runtime, world: World) -> None:
    for name in runtime.names:
        assert check_validity(runtime.agent(name).history) == [], name
    for seen in world.seen:
        assert check_validity(seen.messages) == [], seen.agent


@pytest.mark.spec("FLOW-1", "CARD-16")
@pytest.mark.parametrize("outer", TYPES)
@pytest.mark.parametrize("inner", TYPES)
def test_any_type_may_be_inside_any_other(outer: CardType, inner: CardType) -> None:
    async def main() -> None:
        tree = Tree([outer, inner], 0, failing=False)
        world = world_of(tree)
        async with world.runtime(*tree.configs) as runtime:
            root = runtime.agent(tree.root)
            for _ in range(2):
                result = await root.generate("go")
                assert result.message.role == "assistant"
                assert result.text
            asked = {seen.agent for seen in world.seen}
            assert asked & {"ann", "bob", "cid"}
            assert root.tree_usage.requests == len(world.seen)
            assert_valid(runtime, world)

    anyio.run(main)


@pytest.mark.spec("FLOW-1", "FLOW-4")
@given(
    kinds=st.lists(st.sampled_from(TYPES), min_size=1, max_size=5),
    seed=st.integers(0, 999),
    failing=st.booleans(),
    steps=st.one_of(st.none(), st.integers(0, 120)),
)
def test_nested_failing_or_cancelled_anywhere_histories_stay_valid(
    kinds: list[CardType], seed: int, failing: bool, steps: int | None
) -> None:
    async def main() -> None:
        tree = Tree(kinds, seed, failing=failing)
        world = world_of(tree)
        waits = random.Random(seed)

        async def pause(name: str) -> None:
            for _ in range(waits.randint(0, 5)):
                await anyio.lowlevel.checkpoint()

        world.pause = pause
        async with world.runtime(*tree.configs) as runtime:
            root = runtime.agent(tree.root)

            async def turn() -> None:
                with suppress(*([FastAgentError] if failing else [])):
                    assert (await root.generate("go")).message.role == "assistant"

            async with anyio.create_task_group() as group:
                group.start_soon(turn)
                if steps is not None:
                    for _ in range(steps):
                        await anyio.lowlevel.checkpoint()
                    group.cancel_scope.cancel()
            assert_valid(runtime, world)
            # Whatever happened, everything can be used again.
            await turn()
            assert_valid(runtime, world)

    anyio.run(main)


@pytest.mark.spec("FLOW-3")
@pytest.mark.parametrize("types", [("chain", "parallel"), ("router", "MAKER"), ("chain", "chain")])
def test_a_ring_of_workflows_is_refused_at_load(
    tmp_path: Path, types: tuple[CardType, CardType]
) -> None:

    member = {"chain": "sequence: [{}]", "parallel": "fan_out: [{}]", "MAKER": "worker: {}"}
    for name, kind, other in zip(("a", "b"), types, ("b", "a"), strict=True):
        field = member.get(kind, "agents: [{}]").format(other)
        text = f"type: {kind}\nname: {name}\ninstruction: Be.\n{field}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    program = FastAgent(cwd=tmp_path, environ={}, ignore_config=True)
    with pytest.raises(CardError) as raised:
        program.load_agents(tmp_path)
    assert [found.code for found in raised.value.diagnostics] == ["FA202"]
    assert program.load_set.cards == {}
