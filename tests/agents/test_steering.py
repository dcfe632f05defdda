from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.workflows.scripted_world import World, agent, agents, card

from fast_agent.agents.events import Steered
from fast_agent.agents.turn_context import TOP, SteeringQueue
from fast_agent.errors import RunError
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.script import Call
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.agents.events import Event
    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]

pytestmark = pytest.mark.anyio


@pytest.mark.spec("T-B1.1", "T-B1.2", "T-B1.3")
async def test_a_turn_takes_messages_after_all_results_and_before_its_next_request(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    seen: list[ModelRequest] = []
    heard: list[Event] = []
    done: list[str] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        if call.id == "c1":
            agent.steer("in French")
            agent.steer(Message.user("and short"))
            await anyio.lowlevel.checkpoint()
        done.append(call.id)
        return call.id

    model = script([asking(("c1", "look"), ("c2", "look")), Message.assistant("oui")], seen)
    agent = make_agent(model, tools=[doing("look", work)])
    result = await agent.generate("go", listener=heard.append)
    assert sorted(done) == ["c1", "c2"]  # no call was skipped
    # A provider gets them in one message with the results; the history keeps each by itself.
    (_, _, last) = seen[1].messages
    assert [one.id for one in last.tool_results] == ["c1", "c2"]
    assert last.text == "in French\nand short"
    assert [one.text for one in result.messages if one.role == "user"][-2:] == [
        "in French",
        "and short",
    ]
    assert [one.message.text for one in heard if isinstance(one, Steered)] == [
        "in French",
        "and short",
    ]
    assert await agent.send("next")
    assert result.text == "oui"


async def test_a_message_that_comes_too_late_is_not_sent(
    make_agent: MakeAgent, script: Script
) -> None:
    seen: list[ModelRequest] = []

    async def late(request: ModelRequest) -> Message:
        nonlocal waiting
        waiting = agent.steer("too late")
        return Message.assistant("done")

    waiting = None
    agent = make_agent(script([late, Message.assistant("again")], seen))
    result = await agent.generate("go")
    assert waiting is not None
    assert not waiting.taken
    assert [one.text for one in result.messages] == ["go", "done"]
    await agent.send("next")
    assert "too late" not in [one.text for one in seen[-1].messages]


async def test_an_agent_that_does_not_run_cannot_be_steered(
    make_agent: MakeAgent, script: Script
) -> None:
    agent = make_agent(script([Message.assistant("yes")]))
    with pytest.raises(RunError, match="not running"):
        agent.steer("hello")


@pytest.mark.spec("T-B1.2")
async def test_they_are_in_the_journal_before_the_model_gets_them(
    tmp_path: Path, make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    found: list[list[str]] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        agent.steer("in French")
        return "seen"

    def answer(request: ModelRequest) -> Message:
        (turn,) = session.state.open_turns
        found.append([one.text for one in turn.closed()])
        return Message.assistant("oui")

    with SessionStore(tmp_path).create(cwd=tmp_path) as session:
        model = script([asking(("c1", "look")), answer])
        agent = make_agent(
            model, tools=[doing("look", work)], context=replace(TOP, journal=session.journal)
        )
        await agent.send("go")
        assert "in French" in found[0]
        (turn,) = session.state.turns
        assert [one.text for one in turn.closed()][-2:] == ["in French", "oui"]


@pytest.mark.spec("T-B1.4")
async def test_a_workflow_hands_it_to_the_member_that_is_running() -> None:
    world = World({"one": [Call("nothing"), "first"], "two": [Call("nothing"), "second"]})

    async def pause(name: str) -> None:
        if len(world.asked(name)) == 1:
            line.steer(f"to {name}")

    world.pause = pause
    chain = card("line", "chain", sequence=("one", "two"))
    async with world.runtime(chain, *agents(("one", "two"))) as runtime:
        line = runtime.agent("line")
        await line.generate("go")
    assert world.asked("one")[1].text == "to one"
    assert [seen.text for seen in world.asked("two")] == ["first", "to two"]


@pytest.mark.spec("T-B1.4")
def test_several_members_at_the_same_time_cannot_be_steered() -> None:
    steering = SteeringQueue()
    steering.enter()
    waiting = steering.add(Message.user("one"))
    steering.enter()
    with pytest.raises(RunError, match="2 agents are running"):
        steering.add(Message.user("two"))
    steering.leave()
    assert [one.text for one in steering.take()] == ["one"]
    assert waiting.taken


async def test_an_agent_of_a_world_keeps_its_own_messages() -> None:
    world = World({"ann": ["hi"]})
    async with world.runtime(agent("ann")) as runtime:
        with pytest.raises(RunError, match="not running"):
            runtime.agent("ann").steer("x")
