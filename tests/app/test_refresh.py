"""Live agents over cards that change: what stays, what is new, what is notified."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.app.refresh_world import World
from tests.patience import until

from fast_agent.cards.card import Card
from fast_agent.errors import CardError, FastAgentError, RunError

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.spec("LIVE-1", "LIVE-2")
async def test_a_changed_agent_is_new_and_remembers_what_it_did(world: World) -> None:
    world.write("ann", "One.", default="true")
    world.write("bob")
    async with world.live() as app:
        await app("first")
        ann, bob = app["ann"], app["bob"]
        assert not await app.refresh()
        world.write("ann", "Two.", default="true")
        assert await world.reload(app)
        assert app["ann"] is not ann
        assert app["bob"] is bob
        with pytest.raises(RunError, match="agent `ann` is closed"):
            await ann.send("to the old one")
        assert app["ann"].config.instruction == "Two."
        assert [one.text for one in app["ann"].history] == ["first", "first"]
        await app("second")
        assert len(app["ann"].history) == 4


@pytest.mark.spec("LIVE-2")
async def test_an_agent_may_become_a_workflow_of_others(world: World) -> None:
    world.write("ann")
    world.write("bob")
    async with world.live() as app:
        await app["ann"].send("first")
        (world.directory / "ann.md").write_text("---\ntype: chain\nsequence: [bob]\n---\n")
        await world.reload(app)
        assert await app["ann"].send("second") == "second"
        assert [one.text for one in app["ann"].history] == ["first", "first", "second", "second"]
        assert [one.text for one in app["bob"].history] == ["second", "second"]


@pytest.mark.spec("LIVE-1")
async def test_a_changed_model_is_asked_at_the_next_turn(world: World) -> None:
    world.write("ann", model="passthrough")
    async with world.live() as app:
        assert await app("first") == "first"
        world.write("ann", model="playback")
        await world.reload(app)
        assert app.runtime.model_of("ann").text == "playback"
        assert await app("second") != "second"


@pytest.mark.spec("LIVE-1")
async def test_what_depends_on_a_changed_agent_is_new_too(world: World) -> None:
    world.write("ann", description="Adds.")
    world.write("lead", agents="[ann]", default="true")
    world.write("top", agents="[lead]")
    world.write("bob")
    async with world.live() as app:
        before = {name: app[name] for name in ("lead", "top", "bob")}
        world.write("ann", description="Subtracts.")
        await world.reload(app)
        assert app["lead"] is not before["lead"]
        assert app["top"] is not before["top"]
        assert app["bob"] is before["bob"]


@pytest.mark.spec("LIVE-3")
async def test_a_turn_under_way_ends_as_it_began_and_the_next_waits_for_it(world: World) -> None:
    begun, goes_on = world.directory / "begun", world.directory / "goes on"
    (world.directory / "tools.py").write_text(
        "import anyio\nfrom pathlib import Path\n\n\nasync def hold() -> str:\n"
        f"    Path({str(begun)!r}).touch()\n"
        f"    while not Path({str(goes_on)!r}).exists():\n        await anyio.sleep(0.01)\n"
        "    return 'first'\n"
    )
    world.write("ann", "One.", function_tools='["tools.py:hold"]', default="true")
    answers: list[str] = []
    async with world.live() as app, anyio.create_task_group() as tasks:
        old = app["ann"]

        async def ask(text: str) -> None:
            answers.append(await app["ann"].send(text))

        tasks.start_soon(ask, "***CALL_TOOL hold {}")
        await until(begun.exists)
        world.write("ann", "Two.", default="true")
        await world.reload(app)
        assert not old.idle
        goes_on.touch()
        await ask("second")
        assert answers == ["first", "second"]
        assert len(app["ann"].history) == 6
        world.write("ann", "Three.", default="true")
        await world.reload(app)
        with pytest.raises(RunError, match="is closed"):
            await old.send("too late")


@pytest.mark.spec("LIVE-4")
async def test_a_card_that_cannot_be_run_changes_nothing_and_is_reported_once(world: World) -> None:
    (world.directory / "tools.py").write_text("def add(a: int) -> int:\n    return a\n")
    world.write("ann", function_tools='["tools.py:add"]', default="true")
    world.write("bob", "One.")
    async with world.live() as app:
        ann, bob = app["ann"], app["bob"]
        (world.directory / "tools.py").write_text("raise OSError\ndef add(a: int) -> int: ...\n")
        world.write("bob", "Two.")
        assert not world.program.reload().refused
        with pytest.raises(CardError, match="failed while it was imported"):
            await app.refresh()
        assert not await app.refresh()
        assert (app["ann"], app["bob"]) == (ann, bob)
        assert await app("still here") == "still here"
        (world.directory / "tools.py").write_text("def add(a: int) -> int:\n    return a + 1\n")
        assert await world.reload(app)
        assert app["bob"].config.instruction == "Two."


@pytest.mark.spec("LIVE-5")
async def test_functions_run_as_they_are_now(world: World) -> None:
    (world.directory / "tools.py").write_text("def add(a: int) -> int:\n    return a + 1\n")
    world.write("ann", function_tools='["tools.py:add"]', default="true")
    async with world.live() as app:
        assert await app('***CALL_TOOL add {"a": 1}') == "2"
        (world.directory / "tools.py").write_text("def add(a: int) -> int:\n    return a + 9\n")
        await world.reload(app)
        assert await app('***CALL_TOOL add {"a": 1}') == "10"


@pytest.mark.spec("LIVE-6")
async def test_an_agent_given_as_a_tool_is_one_at_the_next_turn_and_after_reloads(
    world: World,
) -> None:
    world.write("ann", default="true")
    world.write("bob")
    call = '***CALL_TOOL agent__bob {"message": "hi"}'
    async with world.live() as app:
        assert "no tool" in await app(call)
        assert world.program.attach("ann", ["bob"]) == ("bob",)
        await app.refresh()
        assert await app(call) == "hi"
        world.write("ann", "Changed.", default="true")
        await world.reload(app)
        assert await app(call) == "hi"
        (world.directory / "bob.md").unlink()
        await world.reload(app)
        assert "no tool" in await app(call)
        with pytest.raises(FastAgentError):
            app["bob"]


@pytest.mark.spec("LIVE-7")
async def test_conversations_share_agents_but_not_memories(world: World) -> None:
    world.write("ann", "One.", default="true")
    world.write("talk", type="chain", sequence="[ann]")
    async with world.live() as app:
        mine, theirs = app.new_conversation(), app.new_conversation()
        await app.agent("talk", mine).send("secret")
        await app.agent("ann", theirs).send("hello")
        assert [one.text for one in mine.agent("ann").history] == ["secret", "secret"]
        assert [one.text for one in theirs.agent("ann").history] == ["hello", "hello"]
        assert len(app["ann"].history) == 0
        assert (mine.usage.requests, theirs.usage.requests, app.usage.requests) == (1, 1, 2)
        world.write("ann", "Two.", default="true")
        await world.reload(app)
        for conversation in (mine, theirs):
            assert conversation.agent("ann").config.instruction == "Two."
            assert len(conversation.agent("ann").history) == 2
        await mine.aclose()
        await theirs.aclose()


async def test_agents_that_do_not_change_hold_no_cards_of_before(world: World) -> None:
    names = ("ann", "ben", "cat")
    for name in names:
        world.write(name)
    world.write("dan", agents="[ben]", default="true")
    async with world.live() as app:
        for name in names:
            # Each is made when the card of another is newer.
            assert await app[name].send("hi") == "hi"
            await app("hi")
            world.write("eve", f"Say it like {name}.")
            await world.reload(app)
            await app["eve"].send("hi")
        gc.collect()
        found = [one for one in gc.get_objects() if isinstance(one, Card)]
        own = [one for one in found if str(world.directory) in one.path]
        assert sorted(one.config.name for one in own) == ["ann", "ben", "cat", "dan", "eve"]
        assert await app("still there") == "still there"
