from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.patience import pass_seconds, until
from tests.workflows.scripted_world import World, agent, agents, card

from fast_agent.agents.output import JsonOutput
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import LimitError, RunError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import ImageContent, Message, TextContent
from fast_agent.models.script import Fail, Say

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import ModelRequest

pytestmark = pytest.mark.anyio

PICTURE = ImageContent("aGk=", "image/png")


def fan(*names: str, **fields: object) -> AgentConfig:
    return card("fan", "parallel", fan_out=names, **fields)


@pytest.mark.spec("FLOW-PARALLEL-1", "FLOW-PARALLEL-4", "CARD-38")
async def test_all_work_at_once_and_are_joined_in_the_order_of_the_card() -> None:
    # Each answers only when the next one has been asked: one after another, they would hang.
    names = ("one", "two", "three")
    asked = {name: anyio.Event() for name in names}
    world = World({name: [name.upper()] for name in names})

    async def wait_for_the_next(name: str) -> None:
        asked[name].set()
        if name != names[-1]:
            await asked[names[names.index(name) + 1]].wait()

    world.pause = wait_for_the_next
    with anyio.fail_after(60):
        async with world.runtime(fan(*names), *agents(names)) as runtime:
            result = await runtime.agent("fan").generate("go")
    assert result.text == "## one\n\nONE\n\n## two\n\nTWO\n\n## three\n\nTHREE"
    assert sorted(str(facts["agent"]) for facts in world.facts_of("branch")) == sorted(names)
    assert world.facts_of("branch")[0]["agent"] == "three"
    assert result.workflow == {
        "type": "parallel",
        "branches": [{"agent": name, "text": name.upper()} for name in names],
    }
    assert {seen.text for seen in world.seen} == {"go"}
    assert result.tree_usage.requests == 3


@pytest.mark.spec("FLOW-PARALLEL-2")
@pytest.mark.parametrize("include", [True, False])
async def test_the_agent_that_joins_gets_the_request_and_tagged_answers(include: bool) -> None:
    world = World({"one": ["<1>"], "two": ["2 & 3"], "judge": ["both"]})
    cards = (
        fan("two", "one", fan_in="judge", include_request=include),
        *agents(["one", "two", "judge"]),
    )
    async with world.runtime(*cards) as runtime:
        result = await runtime.agent("fan").generate(
            Message("user", (TextContent("what is <it>?"), PICTURE))
        )
    assert result.text == "both"
    request = "<request>\nwhat is &lt;it&gt;?\n</request>\n\n" if include else ""
    reported = world.asked("judge")[0]
    assert reported.text == (
        f'{request}<answer agent="two">\n2 &amp; 3\n</answer>\n\n'
        '<answer agent="one">\n&lt;1&gt;\n</answer>'
    )
    assert (PICTURE in reported.messages[-1].content) == include
    assert result.workflow is not None
    assert result.workflow["fan_in"] == "judge"


@pytest.mark.spec("FLOW-PARALLEL-3")
async def test_a_branch_that_fails_is_reported_in_its_place() -> None:
    plays = {"one": ["first"], "two": [Fail("no <luck>")], "three": ["third"]}
    names = ("one", "two", "three")
    world = World(dict(plays))
    async with world.runtime(fan(*names), *agents(names)) as runtime:
        result = await runtime.agent("fan").generate("go")
        for name in names:
            assert check_validity(runtime.agent(name).history) == []
    assert result.text == ("## one\n\nfirst\n\n## two\n\n[failed: no <luck>]\n\n## three\n\nthird")
    assert world.warnings == ["branch `two` failed: no <luck>"]
    assert result.workflow == {
        "type": "parallel",
        "branches": [
            {"agent": "one", "text": "first"},
            {"agent": "two", "error": "no <luck>"},
            {"agent": "three", "text": "third"},
        ],
    }

    world = World({**plays, "judge": ["fine"]})
    cards = (fan(*names, fan_in="judge", include_request=False), *agents([*names, "judge"]))
    async with world.runtime(*cards) as runtime:
        await runtime.agent("fan").generate("go")
    assert world.asked("judge")[0].text.split("\n\n")[1] == (
        '<failure agent="two">\nno &lt;luck&gt;\n</failure>'
    )


@pytest.mark.spec("FLOW-PARALLEL-3")
async def test_all_branches_failing_is_an_error() -> None:
    world = World({"one": [Fail("rain")], "two": [Fail("snow")], "judge": []})
    cards = (fan("one", "two", fan_in="judge"), *agents(["one", "two", "judge"]))
    async with world.runtime(*cards) as runtime:
        fork = runtime.agent("fan")
        with pytest.raises(RunError, match="every branch of `fan` failed: `one`: rain; `two`: sn"):
            await fork.generate("go")
        assert len(fork.history) == 0
    assert world.asked("judge") == []


@pytest.mark.spec("FLOW-LIMIT-1")
async def test_a_limit_costs_a_branch_its_answer_and_the_agent_that_joins_the_turn() -> None:
    limits = RequestParams(usage_limits=UsageLimits(max_requests=2))
    alone = card("top", "parallel", fan_out=("a", "b", "c"), request_params=limits)
    reached = "agent `top` reached its usage limit `max_requests` of 2"
    world = World()
    async with world.runtime(alone, *agents("abc")) as runtime:
        result = await runtime.agent("top").generate("go")
    assert result.text == f"## a\n\ngo\n\n## b\n\ngo\n\n## c\n\n[failed: {reached}]"
    assert world.warnings == [f"branch `c` failed: {reached}"]
    joined = replace(alone, fan_out=("a", "b"), fan_in="c")
    async with world.runtime(joined, *agents("abc")) as runtime:
        with pytest.raises(LimitError, match=reached):
            await runtime.agent("top").generate("go")


async def test_branches_of_one_agent_run_on_clones() -> None:
    both = anyio.Event()
    world = World({"one": ["a", "b"]})

    async def wait_for_both(name: str) -> None:
        if len(world.seen) == 2:
            both.set()
        await both.wait()

    world.pause = wait_for_both
    with anyio.fail_after(60):
        async with world.runtime(fan("one", "one"), agent("one")) as runtime:
            text = await runtime.agent("fan").send("go")
            assert len(runtime.agent("one").history) == 0
    assert text == "## one\n\na\n\n## one\n\nb"
    assert [len(seen.messages) for seen in world.seen] == [1, 1]


async def test_clones_are_closed_when_their_turn_is_cancelled() -> None:
    async def pause(_: str) -> None:
        if len(world.seen) == 2:
            scope.cancel()
        await anyio.sleep_forever()

    world = World(pause=pause)
    async with world.runtime(fan("one", "one"), agent("one")) as runtime:
        with anyio.CancelScope() as scope:
            await runtime.agent("fan").send("go")
        assert world.closed == ["one", "one"]


async def test_each_branch_keeps_its_own_history() -> None:
    world = World()
    cards = (fan("one", "two"), agent("one"), agent("two", use_history=False))
    async with world.runtime(*cards) as runtime:
        fork = runtime.agent("fan")
        await fork.generate("a")
        await fork.generate("b")
        assert [one.text for one in runtime.agent("one").history] == ["a", "a", "b", "b"]
        assert len(runtime.agent("two").history) == 0
        assert [one.role for one in fork.history] == ["user", "assistant"] * 2


@pytest.mark.spec("FLOW-OUT-1")
async def test_a_structured_answer_needs_the_agent_that_joins() -> None:
    shape = JsonOutput({"type": "object", "required": ["n"]})
    world = World({"one": ["1"], "judge": ['{"n": 1}']})
    async with world.runtime(fan("one"), agent("one")) as runtime:
        with pytest.raises(RunError, match="cannot return a structured answer") as raised:
            await runtime.agent("fan").generate("go", output=shape)
        assert raised.value.hint == "name the agent that returns it as `fan_in`"
    assert world.seen == []
    async with world.runtime(fan("one", fan_in="judge"), *agents(["one", "judge"])) as runtime:
        result = await runtime.agent("fan").generate("go", output=shape)
    assert result.structured == {"n": 1}
    assert [seen.structured for seen in world.seen] == [False, True]


async def test_nothing_is_said_so_and_pictures_are_kept() -> None:
    def painted(request: ModelRequest) -> str:
        return ""

    world = World({"one": painted, "two": [Say("cut", stop_reason="maxTokens")]})
    world.shown["one"] = (PICTURE,)
    async with world.runtime(fan("one", "two"), *agents(["one", "two"])) as runtime:
        result = await runtime.agent("fan").generate("go")
    assert result.text == "## one\n\n[no text]\n\n## two\n\ncut"
    assert result.message.content[1:] == (PICTURE,)
    assert world.warnings == ["agent `two` ended early: maxTokens"]


async def test_the_agent_that_joins_sees_the_pictures_of_all() -> None:
    other = replace(PICTURE, data="aGo=")
    world = World({"one": [" \n"], "two": ["2"], "judge": ["both"]})
    world.shown.update(one=(PICTURE,), two=(other,))
    cards = (fan("one", "two", fan_in="judge"), *agents(["one", "two", "judge"]))
    async with world.runtime(*cards) as runtime:
        await runtime.agent("fan").generate("go")
    asked = world.asked("judge")[0]
    assert asked.messages[-1].content[1:] == (PICTURE, other)
    assert '<answer agent="one">\n[no text]\n</answer>' in asked.text


async def test_a_branch_that_hangs_is_cancelled_with_the_turn() -> None:
    async def pause(name: str) -> None:
        if name == "two":
            await until(lambda: len(runtime.agent("one").history) == 2)
            pass_seconds(10)
            await anyio.sleep_forever()

    world = World({"one": ["first"]}, pause=pause)
    async with world.runtime(fan("one", "two"), *agents(["one", "two"])) as runtime:
        fork = runtime.agent("fan")
        with anyio.move_on_after(10):
            await fork.generate("go")
        assert [one.stop_reason for one in fork.history] == [None, "cancelled"]
        assert [one.text for one in runtime.agent("one").history] == ["go", "first"]
        assert [one.stop_reason for one in runtime.agent("two").history] == [None, "cancelled"]
        assert {"agent": "two", "index": 1, "error": "cancelled"} in world.facts_of("branch")
