"""What a turn that workers run shows its client before it ends."""

from __future__ import annotations

import asyncio
from threading import Event as Gate
from typing import TYPE_CHECKING, Any

import pytest
from temporalio.service import RPCError, RPCStatusCode
from tests.engine.batch_world import ModelServer, Reply, call_reply, text_reply
from tests.engine.temporal.temporal_world import TemporalWorld, eventually, temporal_world
from tests.engine.temporal.test_conversations import AGENT, talking, use_model
from tests.patience import PATIENCE

from fast_agent.agents.events import (
    ModelAnswered,
    TextStreamed,
    ToolFinished,
    ToolProgressed,
    TurnFinished,
    TurnStarted,
)
from fast_agent.engine.temporal.runs import TemporalRuns

if TYPE_CHECKING:
    from pathlib import Path

    from tests.temporal_server import TemporalServer

    from fast_agent.agents.events import Event

pytestmark = pytest.mark.anyio

TOOLS = """\
import asyncio
from pathlib import Path

from fast_agent import ToolContext


async def dig(place: str, ctx: ToolContext) -> str:
    \"""Dig.\"""
    ctx.progress(1, 3, "a stone")
    while not Path(place).exists():
        await asyncio.sleep(0.05)
    return "gold"
"""


def text_of(events: list[Event], agent: str = "one") -> str:
    """Return the text that was shown of an agent so far."""
    return "".join(
        one.text for one in events if isinstance(one, TextStreamed) and one.origin.agent == agent
    )


@pytest.mark.spec("TEMPORAL-7")
async def test_text_and_progress_are_shown_while_the_step_is_under_way(
    tmp_path: Path, server: TemporalServer
) -> None:
    place, may_end = tmp_path / "dug", Gate()

    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return text_reply("there is gold below")
        return call_reply("dig", {"place": str(place)}, "call")

    def midway() -> None:
        if place.exists():  # in the answer, and not in the call
            may_end.wait(PATIENCE)

    with ModelServer(reply, midway=midway) as models:
        async with temporal_world(tmp_path, server) as world, world.worker():
            use_model(world, models)
            (tmp_path / "tools.py").write_text(TOOLS)
            world.write(one=f"{AGENT}function_tools: [tools.py:dig]\n")
            async with talking(world) as app:
                events: list[Event] = []
                turn = asyncio.create_task(app.one.generate("go", listener=events.append))

                async def is_digging() -> bool:
                    return any(isinstance(one, ToolProgressed) for one in events)

                await eventually(is_digging)
                (progressed,) = (one for one in events if isinstance(one, ToolProgressed))
                assert (progressed.progress, progressed.total) == (1, 3)
                assert (progressed.message, progressed.call_id) == ("a stone", "call")
                place.touch()

                async def has_begun() -> bool:
                    return bool(text_of(events))

                await eventually(has_begun)
                assert text_of(events) == "there is "
                assert not turn.done()
                may_end.set()
                result = await turn
    assert result.text == text_of(events) == "there is gold below"
    kinds = [type(one).__name__ for one in events]
    assert kinds == [
        "TurnStarted",
        "ModelRequested",
        "ModelAnswered",
        "ToolStarted",
        "ToolProgressed",
        "ToolFinished",
        "ModelRequested",
        "TextStreamed",
        "TextStreamed",
        "ModelAnswered",
        "TurnFinished",
    ]
    assert {one.origin for one in events} == {events[0].origin}
    used = [one.usage.input_tokens for one in events if isinstance(one, ModelAnswered)]
    assert used == [7, 7]


TEAM = {
    "team": "type: chain\nsequence: [one, two]\ndefault: true\n",
    "one": "type: agent\nmodel: generic.m\ninstruction: x\nagents: [child]\n",
    "two": "type: agent\nmodel: generic.m\ninstruction: y\n",
    "child": "type: agent\nmodel: generic.m\ninstruction: z\n",
}


def delegate(body: dict[str, Any]) -> Reply:
    """Answer as the agents of the team do."""
    last = body["messages"][-1]
    if body["messages"][0]["content"] == "x" and last["role"] == "user":
        return call_reply("agent__child", {"message": "look"}, "call")
    return text_reply(f"re: {last['content']}")


def shape(events: list[Event]) -> list[object]:
    """Return what happened, with turns and calls numbered in the order they came up."""
    numbers: dict[object, int] = {}

    def number(of: str | None) -> int:
        return 0 if of is None else numbers.setdefault(of, len(numbers) + 1)

    found: list[object] = []
    texts: dict[str, str] = {}
    for one in events:
        origin = one.origin
        if isinstance(one, TextStreamed):
            texts[origin.turn_id] = texts.get(origin.turn_id, "") + one.text
            continue
        text = texts.pop(origin.turn_id, "") if isinstance(one, ModelAnswered) else ""
        place = (origin.agent, number(origin.turn_id), number(origin.parent_call_id))
        found.append((type(one).__name__, *place, text))
    return found


@pytest.mark.spec("TEMPORAL-7")
async def test_a_listener_is_shown_what_it_is_shown_of_a_turn_that_runs_here(
    tmp_path: Path, server: TemporalServer
) -> None:
    with ModelServer(delegate) as models:
        async with temporal_world(tmp_path, server) as world, world.worker():
            use_model(world, models)
            world.write(**TEAM)
            here: list[Event] = []
            program = world.program()
            program.load_agents(".")
            async with program.run() as app:
                await app.team.generate("go", listener=here.append)
            there: list[Event] = []
            async with talking(world) as app:
                for _ in range(2):
                    there.clear()
                    await app.team.generate("go", listener=there.append)
                    app.team.clear()
                    assert shape(there) == shape(here)


@pytest.mark.spec("TEMPORAL-7")
async def test_a_client_that_sees_no_progress_is_shown_the_messages_at_the_end(
    tmp_path: Path, server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    async def away(_: TemporalRuns, run_id: str, *given: object) -> None:
        looked.append(run_id)
        raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    monkeypatch.setattr(TemporalRuns, "shown_steps", away)
    monkeypatch.setattr(TemporalRuns, "events", away)
    with ModelServer(delegate) as models:
        async with temporal_world(tmp_path, server) as world, world.worker():
            use_model(world, models)
            world.write(**TEAM)
            async with talking(world) as app:
                events: list[Event] = []
                result = await app.one.generate("go", listener=events.append)
    assert looked
    assert [type(one) for one in events] == [
        TurnStarted,
        ModelAnswered,
        ToolFinished,
        ModelAnswered,
        TurnFinished,
    ]
    assert result.text == "re: re: look"


async def test_nothing_is_kept_of_a_turn_that_nobody_listens_to(
    tmp_path: Path, server: TemporalServer
) -> None:
    with ModelServer(delegate) as models:
        async with temporal_world(tmp_path, server) as world, world.worker():
            use_model(world, models)
            world.write(**TEAM)
            async with talking(world) as app:
                await app.one.generate("go")
                assert await kept(world) == []
                await app.one.generate("go", listener=lambda _: None)
                assert await kept(world)


async def kept(world: TemporalWorld) -> list[Any]:
    """Return the events that the conversation keeps of its turns."""
    found: list[Any] = []
    async for run in world.client.list_workflows(world.query):
        history = await world.client.get_workflow_handle(run.id).fetch_history()
        for event in history.events:
            accepted = event.workflow_execution_update_accepted_event_attributes
            if event.HasField("workflow_execution_update_accepted_event_attributes"):
                key = accepted.accepted_request.meta.update_id
                found += await world.runs.events(run.id, key, 0)
    return found
