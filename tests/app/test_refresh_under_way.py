"""Cards that change while turns run: what began with one set of cards ends with it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.app.refresh_world import World

from fast_agent.errors import CardError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

STAMP = "***CALL_TOOL stamp {}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def call(tool: str, **arguments: str) -> str:
    return f"***CALL_TOOL {tool} {json.dumps(arguments)}"


def stamped(world: World, number: int) -> None:
    world.stamp("left", number, model="slow?seconds=0.05")
    world.stamp("right", number)


@pytest.mark.spec("LIVE-3")
async def test_a_workflow_ends_with_the_members_it_began_with(world: World) -> None:
    stamped(world, 1)
    world.write("inner", type="chain", sequence="[left, right]")
    world.write("both", type="chain", sequence="[inner]", default="true")
    answers: list[str] = []
    async with world.live() as app:

        async def ask() -> None:
            answers.append(await app["both"].send(STAMP))

        async with anyio.create_task_group() as tasks:
            for number in (2, 3, 4):
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                stamped(world, number)
                await world.reload(app)
        assert answers == ["1 1", "2 2", "3 3"]
        await ask()
        assert answers[-1] == "4 4"
        assert [one.text for one in app["both"].history][1::2] == answers


@pytest.mark.spec("LIVE-3")
async def test_an_agent_calls_the_child_its_turn_began_with(world: World) -> None:
    world.stamp("low", 1)
    world.write("child", agents="[low]")
    world.write("lead", agents="[child]", model="slow?seconds=0.1", default="true")
    below = call("agent__low", message=call("stamp", seen="x"))
    above = call("agent__child", message=below)
    answers: list[str] = []
    async with world.live() as app:

        async def ask() -> None:
            answers.append(await app["lead"].send(above))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            world.stamp("low", 2)
            await world.reload(app)
        await ask()
    assert answers == ["x 1", "x 2"]


@pytest.mark.spec("LIVE-4")
async def test_an_agent_nobody_holds_is_refused_with_the_rest_when_it_cannot_be_made(
    world: World,
) -> None:
    tools = world.directory / "tools.py"
    tools.write_text("def add() -> int:\n    return 1\n")
    world.write("ann", function_tools='["tools.py:add"]', default="true")
    async with world.live() as app:

        async def ask() -> str:
            conversation = app.new_conversation()
            try:
                return await app.agent("ann", conversation).send("***CALL_TOOL add {}")
            finally:
                await conversation.aclose()

        assert await ask() == "1"
        tools.write_text("raise OSError\ndef add() -> int:\n    return 2\n")
        with pytest.raises(CardError, match="failed while it was imported"):
            await world.reload(app)
        assert await ask() == "1"


@pytest.mark.spec("RELOAD-5", "LIVE-3", "LIVE-4")
async def test_a_set_that_stops_validating_under_100_requests_is_kept_from_all(
    world: World,
) -> None:
    stamped(world, 1)
    world.write("both", type="chain", sequence="[left, right]", default="true")
    answers: list[str] = []
    async with world.live() as app:

        async def ask() -> None:
            await app.refresh()
            conversation = app.new_conversation()
            answers.append(await app.agent("both", conversation).send(STAMP))
            await conversation.aclose()

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(ask)
                await anyio.sleep(0.001)
                if number == 30:
                    (world.directory / "right.md").write_text("---\nmodel: [passthrough\n---\n")
                elif number == 60:
                    (world.directory / "right.md").unlink()
                if number % 10 == 0:
                    assert world.program.reload().refused == (number >= 30)
        assert answers == ["1 1"] * 100
        stamped(world, 2)
        assert await world.reload(app)
        await ask()
    assert answers[-1] == "2 2"


@pytest.mark.spec("RELOAD-5", "LIVE-2")
async def test_swapped_names_renames_and_a_root_that_vanishes_while_agents_live(
    world: World,
) -> None:
    cards = world.directory / "cards"
    cards.mkdir()
    for name in ("ann", "bob"):
        (cards / f"{name}.md").write_text(f"---\nname: {name}\nmodel: passthrough\n---\n{name}.\n")
    world.program.load_agents(cards)
    async with world.program.run(grows=True) as app:
        await app["ann"].send("to ann")
        await app["bob"].send("to bob")
        one, other = (cards / "ann.md").read_text(), (cards / "bob.md").read_text()
        (cards / "ann.md").write_text(other)
        assert world.program.reload().refused  # both are called bob
        assert not await app.refresh()
        (cards / "bob.md").write_text(one)
        assert not world.program.reload().refused
        (cards / "bob.md").rename(cards / "renamed.md")
        await world.reload(app)
        assert [app[name].history[0].text for name in ("ann", "bob")] == ["to ann", "to bob"]
        away = cards.rename(world.directory / "away")
        assert world.program.reload().refused
        assert await app["ann"].send("still") == "still"
        away.rename(cards)
        assert not world.program.reload().refused
        shutil.rmtree(cards)
        assert world.program.reload().refused
        assert await app["bob"].send("still") == "still"
        cards.mkdir()
        (cards / "ann.md").write_text("---\nname: ann\nmodel: passthrough\n---\nBack.\n")
        await world.reload(app)
        assert app["ann"].config.instruction == "Back."
        assert [one.text for one in app["ann"].history] == ["to ann"] * 2 + ["still"] * 2
        assert "bob" not in app


@pytest.mark.spec("LIVE-1")
async def test_a_workflow_asks_the_model_that_was_chosen_for_a_member(world: World) -> None:
    world.write("left")
    world.write("both", type="chain", sequence="[left]", default="true")
    async with world.live() as app:
        assert await app("first") == "first"
        await app.choose_model("left", "slow?seconds=0")
        assert await app("second") == "second"
        assert [one.text for one in app["left"].history] == ["first"] * 2 + ["second"] * 2
        assert getattr(app["left"], "model_name", "") == "slow"
