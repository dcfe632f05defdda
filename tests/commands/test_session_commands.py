"""Sessions begun, gone on with, forked, renamed, deleted and exported from a controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import SessionError

if TYPE_CHECKING:
    from tests.commands.controller_world import DeskWorld, Shell

pytestmark = [pytest.mark.anyio]


def texts(shell: Shell) -> list[str]:
    return [one.text for one in shell.controller.instance().history]


def here(shell: Shell) -> str:
    assert shell.controller.session is not None
    return shell.controller.session.id


@pytest.mark.spec("CMD-13")
async def test_a_desk_goes_from_session_to_session(world: DeskWorld) -> None:
    world.write("ann", default="true")
    world.write("bob")
    async with world.sat(kept=True) as shell:
        first = here(shell)
        await shell("@bob")
        await shell("one")
        result = await shell.run("/session new the second one")
        assert result.session_changed
        assert texts(shell) == []
        await shell("@ann")
        await shell("two")
        second = here(shell)
        listed = await shell("/session")
        assert f"`{second}` (this one)" in listed
        assert "1 turn: the second one" in listed
        assert "1 turn: one" in listed
        result = await shell.run(f"/session resume {first}")
        assert (result.agent, here(shell), texts(shell)) == ("bob", first, ["one", "one"])
        await shell("three")
        assert "is already open here" in await shell(f"/session resume {first}")
        assert (await shell.run("/session resume")).text.startswith("session")
        # The one before is closed: another program may have it.
        world.sessions.open(second).close()
        with pytest.raises(SessionError, match="in use"):
            world.sessions.open(first)


@pytest.mark.spec("CMD-13")
async def test_a_session_is_forked_at_a_turn(world: DeskWorld) -> None:
    world.write("ann", default="true")
    async with world.sat(kept=True) as shell:
        first = here(shell)
        for text in ("one", "two"):
            await shell(text)
        assert "there is no turn `9`" in await shell.refused("/session fork 9")
        reported = await shell("/session fork 1")
        assert reported == f"session `{here(shell)}` continues from here; `{first}` stays"
        assert texts(shell) == ["one", "one"]
        await shell("three")
        summary, state = world.sessions.read(first)
        assert summary.turns == 2
        assert [message.text for message in state.history("ann") or []][-1] == "two"


@pytest.mark.spec("CMD-13")
async def test_sessions_are_renamed_exported_and_deleted(world: DeskWorld) -> None:
    world.write("ann", default="true")
    async with world.sat(kept=True) as shell:
        await shell("one")
        first = here(shell)
        await shell("/session rename it's a \x1b[2J title")
        assert "it's a <U+001B>[2J title" in await shell("/session list")
        await shell("/session export talk.md")
        await shell("/session export talk.json")
        assert "one" in (world.directory / "talk.md").read_text()
        assert '"messages"' in (world.directory / "talk.json").read_text()
        assert "already exists" in await shell.refused("/session export talk.md")
        await shell("/session export --force talk.md")
        assert "cannot be written" in await shell.refused("/session export nowhere/talk.md")
        assert "cannot be deleted" in await shell.refused(f"/session delete {first}")
        await shell("/session new")
        await shell(f"/session delete {first}")
        assert first not in await shell("/session")
        assert "there is no session" in await shell.refused(f"/session delete {first}")
        assert "there is no session" in await shell.refused("/session resume ../../etc/passwd")


@pytest.mark.spec("CMD-13", "CMD-14")
async def test_a_damaged_session_leaves_the_desk_where_it_was(world: DeskWorld) -> None:
    world.write("ann", default="true")
    async with world.sat(kept=True) as shell:
        await shell("one")
        first = here(shell)
        (world.home / "sessions/broken.sqlite").write_bytes(b"not a database" * 100)
        await shell.refused("/session resume broken")
        assert here(shell) == first
        await shell("two")
        assert texts(shell) == ["one", "one", "two", "two"]
        assert "`broken`" in await shell("/session")


@pytest.mark.spec("CMD-13")
async def test_where_nothing_is_kept_it_is_said(world: DeskWorld) -> None:
    world.write("ann", default="true")
    async with world.sat() as shell:
        for line in ("/session", "/session new", "/session resume x"):
            assert "conversations are not saved here" in await shell.refused(line)
        for line in ("/session fork", "/session rename x", "/session export"):
            assert "is not saved as a session" in await shell.refused(line)
