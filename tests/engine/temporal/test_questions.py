"""Questions that a step asks the user of its run."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.engine.temporal.temporal_world import eventually, temporal_world
from tests.engine.temporal.test_conversations import talking
from tests.temporal_server import TemporalServer

from fast_agent import HumanAnswer, HumanRequest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.engine.temporal.temporal_world import TemporalWorld

pytestmark = pytest.mark.anyio

_TOOLS = '''\
import asyncio
from pathlib import Path

from fast_agent import HumanRequest, ToolContext, tool


@tool
async def unlock(context: ToolContext) -> str:
    """Ask for the code until it is right."""
    tried = []
    while "3333" not in tried and len(tried) < 9:
        answer = await context.human.ask(HumanRequest(message="The code?", agent_name="one"))
        tried.append(str(answer.content["text"]))
    return f"tried {', '.join(tried)}"


@tool(repeatable=False)
async def ask_late(context: ToolContext) -> str:
    """Ask once the step is cancelled."""
    Path("begun").touch()
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        answer = await context.human.ask(HumanRequest(message="late?", agent_name="one"))
        Path("late").write_text(answer.action)
        raise
    return "not cancelled"


@tool
async def choose(message: str, context: ToolContext) -> str:
    """Ask once."""
    if context.human is None:
        return "no user"
    answer = await context.human.ask(HumanRequest(message=message, agent_name="one"))
    return str(answer.content["text"])
'''


@pytest.fixture(scope="module")
def server() -> Generator[TemporalServer]:
    with TemporalServer(in_memory=True) as started:
        yield started


async def answer(world: TemporalWorld, run_id: str, text: str) -> None:
    """Answer the only open question of a run, once it is asked."""
    asked = await eventually(partial(world.runs.questions, run_id))
    ((key, question),) = asked.items()
    assert question["message"] == "The code?"
    await world.runs.answer(run_id, key, "accept", {"text": text})

    async def taken() -> bool:
        return key not in await world.runs.questions(run_id)

    await eventually(taken)


@pytest.mark.spec("TEMPORAL-13")
@pytest.mark.parametrize("lost", [False, True])
async def test_a_step_that_asks_the_same_again_gets_another_answer(
    tmp_path: Path, server: TemporalServer, lost: bool
) -> None:
    (tmp_path / "tools.py").write_text(_TOOLS)
    async with temporal_world(tmp_path, server) as world:
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\nhuman_input: true\n"
            "function_tools: [tools.py:unlock]\n"
        )
        run = await world.start("one", "***CALL_TOOL unlock {}")
        async with world.worker(max_cached_runs=0):
            await answer(world, run.id, "1111")
            await answer(world, run.id, "2222")
            if not lost:
                await answer(world, run.id, "3333")
                assert (await world.runs.result(run)).message.text == "tried 1111, 2222, 3333"
        if lost:  # its next attempt gets the answers of the one before, and asks the third
            async with world.worker():
                await answer(world, run.id, "3333")
                assert (await world.runs.result(run)).message.text == "tried 1111, 2222, 3333"


@pytest.mark.spec("TEMPORAL-13")
@pytest.mark.parametrize("tool", ["request_human_input", "choose"])
async def test_a_question_is_withdrawn_with_the_turn_that_asked_it(
    tmp_path: Path, server: TemporalServer, tool: str
) -> None:
    asked: list[str] = []
    is_asked = asyncio.Event()

    class Hesitant:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request.message)
            is_asked.set()
            if request.message == "first?":
                await asyncio.Event().wait()
            return HumanAnswer(action="accept", content={"text": "yes"})

    (tmp_path / "tools.py").write_text(_TOOLS)
    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\nhuman_input: true\n"
            "function_tools: [tools.py:choose]\n"
        )
        async with talking(world, Hesitant()) as app:
            turn = asyncio.create_task(app.one(f'***CALL_TOOL {tool} {{"message": "first?"}}'))
            await is_asked.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            (run,) = [one async for one in world.client.list_workflows(world.query)]

            async def is_withdrawn() -> bool:
                return not await world.runs.questions(run.id)

            await eventually(is_withdrawn)
            assert await app.one(f'***CALL_TOOL {tool} {{"message": "second?"}}') == "yes"
    assert asked == ["first?", "second?"]


@pytest.mark.spec("TEMPORAL-13")
async def test_without_a_user_a_question_ends_at_once(
    tmp_path: Path, server: TemporalServer
) -> None:
    (tmp_path / "tools.py").write_text(_TOOLS)
    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\nhuman_input: true\n"
            "function_tools: [tools.py:choose, tools.py:unlock]\nconfirm: [unlock]\n"
        )
        program = world.program()
        program.load_agents(".")
        tools = ("request_human_input", "choose", "unlock")
        calls = [f'***CALL_TOOL {tool} {{"message": "which?"}}' for tool in tools[:2]]
        calls.append("***CALL_TOOL unlock {}")
        async with program.run() as app:
            local = [await app.one(call) for call in calls]
        async with talking(world) as app:
            carried = [await app.one(call) for call in calls]
    assert carried[:2] == local[:2]
    assert local[:2] == ["no user is connected; continue without an answer", "no user"]
    assert all(said[2].startswith("`unlock` was not run: ") for said in (local, carried))


@pytest.mark.spec("TEMPORAL-13")
async def test_a_step_that_asks_after_its_cancellation_is_not_answered(
    tmp_path: Path, server: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class User:
        async def ask(self, request: HumanRequest) -> HumanAnswer:
            asked.append(request.message)
            return HumanAnswer(action="accept", content={"text": "yes"})

    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(_TOOLS)

    async def holds(name: str, text: str) -> bool:
        return (tmp_path / name).exists() and (tmp_path / name).read_text() == text

    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(
            one="type: agent\nmodel: passthrough\ninstruction: x\n"
            "function_tools: [tools.py:ask_late]\n"
        )
        async with talking(world, User(), heartbeat_seconds=2) as app:
            turn = asyncio.create_task(app.one("***CALL_TOOL ask_late {}"))
            await eventually(partial(holds, "begun", ""))
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await eventually(partial(holds, "late", "cancel"))
    assert asked == []
