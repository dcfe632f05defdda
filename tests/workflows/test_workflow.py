"""What workflows of every type have in common, shown on chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.patience import pass_seconds
from tests.workflows.scripted_world import World, agent, agents, card

from fast_agent import FastAgent
from fast_agent.agents.events import ModelAnswered, TurnFinished, TurnStarted, WorkflowAdvanced
from fast_agent.agents.turn_context import TurnContext
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.config.settings import Settings
from fast_agent.errors import LimitError, ModelError, RunError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message
from fast_agent.models.script import Call, Fail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.events import Event
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step

pytestmark = pytest.mark.anyio


def chain(*names: str, name: str = "line", **fields: object) -> AgentConfig:
    return card(name, "chain", sequence=names, **fields)


def tool_caller(tool: str) -> Callable[[ModelRequest], Step | str]:
    """Play an agent that calls a tool once, and then answers."""

    def play(request: ModelRequest) -> Step | str:
        results = request.messages[-1].tool_results
        if results:
            return "told " + " ".join([result.text for result in results])
        return Call(tool, {"message": "dig"})

    return play


@pytest.mark.spec("FLOW-1")
async def test_a_workflow_is_a_tool_like_any_agent() -> None:
    world = World({"one": ["first"], "two": ["second"], "boss": tool_caller("agent__line")})
    cards = (agent("boss", agents=("line",)), chain("one", "two"), *agents(["one", "two"]))
    async with world.runtime(*cards) as runtime:
        result = await runtime.agent("boss").generate("go")
        assert result.text == "told second"
        assert result.usage.requests == 2
        assert result.tree_usage.requests == 4
        assert result.workflow is None
        # As a tool it works with clones of its members, and so leaves theirs alone.
        assert len(runtime.agent("one").history) == 0
        assert len(runtime.agent("line").history) == 0


async def test_a_clone_closes_its_members_at_every_depth() -> None:
    inner = card("inner", "parallel", fan_out=("ann", "bob"))
    outer = card("outer", "chain", sequence=("inner", "cid"))
    lead = agent("lead", agents=("outer",))
    world = World({"lead": [Call("agent__outer", {"message": "go"}), "done"]})
    async with world.runtime(lead, outer, inner, *agents(("ann", "bob", "cid"))) as runtime:
        await runtime.agent("lead").send("x")
        assert sorted(world.closed) == ["ann", "bob", "cid"]


async def test_a_clone_starts_with_messages_and_has_members_of_its_own() -> None:
    world = World()
    async with world.runtime(chain("one"), agent("one")) as runtime:
        clone = runtime.clone("line", [Message.user("hi"), Message.assistant("ho")])
        await clone.send("a")
        await clone.send("b")
        assert [one.text for one in clone.history] == ["hi", "ho", "a", "a", "b", "b"]
        assert len(runtime.agent("one").history) == 0
        # Its own clone of a member lives as long as it does.
        assert [len(seen.messages) for seen in world.seen] == [1, 3]
        await clone.aclose()
        await clone.aclose()
        with pytest.raises(RunError, match="`line` is closed"):
            await clone.send("c")


async def test_events_show_the_tree_of_turns() -> None:
    world = World({"one": ["first"]})
    heard: list[Event] = []
    async with world.runtime(chain("one"), agent("one")) as runtime:
        result = await runtime.agent("line").generate("go", listener=heard.append)
    assert heard == world.events
    kinds = [type(event) for event in heard]
    assert kinds[0] is TurnStarted
    assert kinds[-1] is TurnFinished
    assert kinds.index(WorkflowAdvanced) > kinds.index(ModelAnswered)
    outer, inner = heard[0].origin, heard[1].origin
    assert (outer.agent, outer.parent_call_id) == ("line", None)
    assert (inner.agent, inner.parent_call_id) == ("one", outer.turn_id)
    assert isinstance(heard[-1], TurnFinished)
    assert heard[-1].message == result.message
    assert heard[-1].tree_usage == result.tree_usage


async def test_turns_of_one_instance_run_one_after_another() -> None:
    release = anyio.Event()
    world = World()

    async def wait(name: str) -> None:
        await release.wait()

    world.pause = wait
    async with world.runtime(chain("one"), agent("one")) as runtime:
        line = runtime.agent("line")
        async with anyio.create_task_group() as group:
            for text in ("a", "b", "c"):
                group.start_soon(line.send, text)
                await anyio.lowlevel.checkpoint()
            release.set()
        assert [one.text for one in line.history] == ["a", "a", "b", "b", "c", "c"]


async def test_a_message_from_inside_its_own_turn_is_refused() -> None:
    world = World()
    found: list[str] = []
    inside: list[Agent] = []

    async def call_back(name: str) -> None:
        try:
            await inside[0].send("again")
        except RunError as error:
            found.append(error.message)

    world.pause = call_back
    async with world.runtime(chain("one"), agent("one")) as runtime:
        inside.append(runtime.agent("line"))
        with anyio.fail_after(60):
            await inside[0].send("go")
    assert found == ["agent `line` cannot be called from within its own turn"]


async def test_only_a_users_message_starts_a_turn() -> None:
    async with World().runtime(chain("one"), agent("one")) as runtime:
        with pytest.raises(RunError, match="starts with a user message"):
            await runtime.agent("line").generate(Message.assistant("no"))


@pytest.mark.spec("FLOW-LIMIT-1")
async def test_limits_from_around_hold_for_a_chain_and_all_below() -> None:
    settings = Settings(request_params=RequestParams(usage_limits=UsageLimits(max_requests=3)))
    world = World()
    cards = (chain("one", "two"), *agents(["one", "two"]))
    async with world.runtime(*cards, settings=settings) as runtime:
        line = runtime.agent("line")
        await line.send("a")
        with pytest.raises(LimitError, match="`line` reached its usage limit"):
            await line.send("b")
        assert line.tree_usage.requests == 3
        assert [one.text for one in line.history] == ["a", "a"]


async def test_what_another_file_breaks_is_an_error_of_the_turn() -> None:
    world = World()

    async def explode(name: str) -> None:
        raise KeyError("oops")

    world.pause = explode
    async with world.runtime(chain("one"), agent("one")) as runtime:
        with pytest.raises(RunError, match="agent `one` failed: KeyError"):
            await runtime.agent("line").send("go")
    finished = [event for event in world.events if isinstance(event, TurnFinished)]
    assert [(one.origin.agent, one.stop_reason) for one in finished] == [
        ("one", "error"),
        ("line", "error"),
    ]


async def test_forgetting_and_loading() -> None:
    world = World()
    async with world.runtime(chain("one"), agent("one")) as runtime:
        line = runtime.agent("line")
        await line.send("a")
        line.load_history([Message.user("x"), Message.assistant("y")])
        await line.send("b")
        assert [one.text for one in line.history] == ["x", "y", "b", "b"]
        line.clear()
        assert len(line.history) == 0
        assert [one.text for one in runtime.agent("one").history] == ["a", "a", "b", "b"]


async def test_without_history_nothing_is_kept() -> None:
    async with World().runtime(chain("one", use_history=False), agent("one")) as runtime:
        line = runtime.agent("line")
        await line.send("a")
        assert len(line.history) == 0


async def test_resources_need_servers() -> None:
    async with World().runtime(chain("one"), agent("one")) as runtime:
        with pytest.raises(RunError, match="agent `line` has no servers"):
            await runtime.agent("line").with_resource("look", "files", "file:///x")


@pytest.mark.spec("FLOW-2")
async def test_agents_nest_only_so_deep() -> None:
    names = [f"c{number}" for number in range(10)]
    cards = [
        chain(below, name=name) for name, below in zip(names, [*names[1:], "one"], strict=True)
    ]
    world = World()
    async with world.runtime(*cards, agent("one")) as runtime:
        assert await runtime.agent("c2").send("go") == "go"
        with pytest.raises(RunError, match="`one` cannot be asked: agents may call each other 8 d"):
            await runtime.agent("c1").send("go")
        shallow = TurnContext(depth=8)
        with pytest.raises(RunError, match="8 deep"):
            await runtime.agent("c9").generate("go", context=shallow)
        for name in names:
            assert check_validity(runtime.agent(name).history) == []


async def test_a_failure_below_is_reported_by_its_cause() -> None:
    world = World({"one": [Fail("no ink", "buy some")]})
    cards = (chain("inner", name="outer"), chain("one", name="inner"), agent("one"))
    async with world.runtime(*cards) as runtime:
        with pytest.raises(ModelError, match="no ink") as raised:
            await runtime.agent("outer").send("go")
    assert raised.value.hint == "buy some"


async def test_a_workflow_that_hangs_as_a_tool_is_given_up() -> None:
    async def pause(name: str) -> None:
        if name == "one":
            pass_seconds(10)
            await anyio.sleep_forever()

    world = World({"boss": tool_caller("agent__line")}, pause=pause)
    cards = (
        agent("boss", agents=("line",), child_timeout_sec=10),
        chain("inner"),
        chain("one", name="inner"),
        agent("one"),
    )
    async with world.runtime(*cards) as runtime:
        with anyio.fail_after(60):
            answer = await runtime.agent("boss").send("go")
    assert "did not answer within the 10 s of `child_timeout_sec`" in answer
    finished = [event for event in world.events if isinstance(event, TurnFinished)]
    assert [(one.origin.agent, one.stop_reason) for one in finished] == [
        ("one", "cancelled"),
        ("inner", "cancelled"),
        ("line", "cancelled"),
        ("boss", "endTurn"),
    ]


@pytest.mark.spec("FLOW-1")
async def test_a_smart_agent_runs_a_workflow_it_was_told_of(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"set/{name}.yaml").write_text(
            f"name: {name}\nmodel: passthrough\ninstruction: Repeat.\ntool_only: true\n"
        )
    (tmp_path / "set/line.yaml").write_text("type: chain\nname: line\nsequence: [one, two]\n")
    program = FastAgent(cwd=tmp_path, environ={}, ignore_config=True)
    program.smart("boss", model="passthrough")
    async with program.run() as app:
        call = '***CALL_TOOL smart {"agent_card_path": "set", "message": "hello"}'
        assert await app.boss.send(call) == "hello"
        assert app.usage.requests == 4
