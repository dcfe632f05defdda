"""Every type of workflow, by every runner, with members that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.runners import RUNNERS, RunnerName, run_by
from tests.workflows.one_of_each import PLACES, help_out, lead
from tests.workflows.scripted_world import World, agents

from fast_agent.errors import RunError
from fast_agent.messages.history import check_validity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Pause: TypeAlias = Callable[[str], Awaitable[None]]

MEMBERS = agents(("kid", "pal"))


def new_world(pause: Pause | None = None) -> World:
    return World({"top": lead, "pal": help_out, "kid": lambda _: "done"}, pause=pause)


async def wait(name: str) -> None:
    """Wait for a timer, for the loop and for a thread, as models do."""
    del name
    await anyio.sleep(0.001)
    await anyio.lowlevel.checkpoint()
    await anyio.to_thread.run_sync(int)


async def answers(place: str, pause: Pause | None) -> tuple[str, str, list[str]]:
    """Return two answers of the workflow, and who was asked."""
    world = new_world(pause)
    async with world.runtime(PLACES[place], *MEMBERS) as runtime:
        first, second = await runtime.default.send("go"), await runtime.default.send("on")
        for name in runtime.names:
            assert check_validity(runtime.agent(name).history) == []
    return first, second, sorted(seen.agent for seen in world.seen)


@pytest.mark.spec("LOOP-1")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("place", PLACES)
def test_members_that_wait_answer_as_those_that_do_not(place: str, runner: RunnerName) -> None:
    at_once = run_by("anyio.run", lambda: answers(place, None))
    assert "kid" in at_once[2]
    assert run_by(runner, lambda: answers(place, wait)) == at_once


@pytest.mark.spec("LOOP-5")
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_turn_given_up_on_leaves_a_workflow_that_answers(place: str, runner: RunnerName) -> None:
    async def main() -> None:
        waiting: list[str] = []
        asked = asyncio.Event()

        async def never(name: str) -> None:
            if name != "kid":
                return
            waiting.append(name)
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                waiting.remove(name)

        world = new_world(never)
        async with world.runtime(PLACES[place], *MEMBERS) as runtime:
            turn = asyncio.create_task(runtime.default.send("go"))
            await asked.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            assert waiting == []
            world.pause = wait
            assert await runtime.default.send("on")
            for name in runtime.names:
                assert check_validity(runtime.agent(name).history) == []

    run_by(runner, main)


@pytest.mark.spec("LOOP-1")
@pytest.mark.parametrize("runner", RUNNERS)
def test_the_error_of_a_member_that_waited_is_reported(runner: RunnerName) -> None:
    async def fail(name: str) -> None:
        await wait(name)
        raise RunError(f"`{name}` is out")

    async def main() -> None:
        world = new_world(fail)
        async with world.runtime(PLACES["parallel"], *MEMBERS) as runtime:
            with pytest.raises(RunError, match="`kid`: `kid` is out; `pal`: `pal` is out"):
                await runtime.default.send("go")

    run_by(runner, main)
