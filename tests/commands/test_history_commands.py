"""Histories shown, cleared, saved, loaded and taken back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import SessionError
from fast_agent.sessions.journal import SessionJournal

if TYPE_CHECKING:
    from tests.commands.controller_world import DeskWorld, Shell

pytestmark = pytest.mark.anyio


def texts(shell: Shell) -> list[str]:
    return [one.text for one in shell.controller.instance().history]


@pytest.mark.spec("CMD-12")
async def test_a_history_is_shown_with_nothing_that_steers_a_terminal(world: DeskWorld) -> None:
    world.write("ann", default="true")
    async with world.sat() as shell:
        assert await shell("/history") == "`ann` remembers nothing"
        await shell("one \x1b[31m" + "x" * 500)
        await shell('***CALL_TOOL nothing {"a": 1}')
        shown = await shell("/history show 3")
        first, *lines = shown.splitlines()
        assert first == "3 before these"
        assert len(lines) == 3
        assert "calls `nothing`" in lines[0]
        assert "error: unknown tool" in lines[1]
        everything = await shell("/history show 99")
        assert "one <U+001B>[31mxxx" in everything
        assert max(map(len, everything.splitlines())) < 250
        for wrong in ("0", "-1", "x", "\uff19", "1" * 40):
            assert "is not a number from 1 on" in await shell.refused(f"/history show {wrong}")


@pytest.mark.spec("CMD-12")
async def test_templates_outlive_a_plain_clear(world: DeskWorld) -> None:
    (world.directory / "seed.json").write_text(
        json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "seed"}]}]})
    )
    world.write("ann", default="true", messages="seed.json")
    async with world.sat() as shell:
        for line in ("/history clear", "/clear"):
            await shell("hello")
            assert await shell(line) == "`ann` remembers nothing now; its 1 templates stay"
            assert texts(shell) == ["seed"]
        assert await shell("/history clear all") == "`ann` remembers nothing now"
        assert "write `all`, or nothing" in await shell.refused("/clear everything")


@pytest.mark.spec("CMD-12")
@pytest.mark.parametrize("name", ["talk.json", "talk.md", "sub dir/it's.json"])
async def test_a_history_is_saved_and_loaded(world: DeskWorld, name: str) -> None:
    world.write("ann", default="true")
    (world.directory / "sub dir").mkdir()
    async with world.sat() as shell:
        assert "no history to save" in await shell.refused("/history save")
        await shell("one")
        await shell(f'/save_history "{name}"')
        assert "already exists" in await shell.refused(f'/history save "{name}"')
        await shell("two")
        await shell(f'/history save --force "{name}"')
        await shell("/clear")
        reported = await shell(f'/history load "{name}"')
        assert "remembers the 4 messages of" in reported
        assert texts(shell) == ["one", "one", "two", "two"]


@pytest.mark.spec("CMD-12", "CMD-14")
async def test_files_that_cannot_be_written_or_read_are_reported(world: DeskWorld) -> None:
    world.write("ann", default="true")
    (world.directory / "bad.json").write_text('{"messages": [{"role": "nobody"}]}')
    (world.directory / "link.json").symlink_to(world.directory / "elsewhere.json")
    async with world.sat() as shell:
        await shell("one")
        for line in (
            "/history save nowhere/x.json", "/history load nowhere.json", "/history load bad.json",
            "/history load .", '/history save "a\0b"', "/history save link.json", "/history load",
        ):  # fmt: skip
            await shell.refused(line)
        assert not (world.directory / "elsewhere.json").exists()
        assert texts(shell) == ["one", "one"]


@pytest.mark.spec("CMD-12")
@pytest.mark.parametrize("kept", [False, True])
async def test_turns_are_taken_back(world: DeskWorld, kept: bool) -> None:
    world.write("ann", default="true")
    async with world.sat(kept=kept) as shell:
        for text in ("one", '***CALL_TOOL nothing {"a": 1}', "three"):
            await shell(text)
        result = await shell.run("/history rewind")
        assert (result.text, result.session_changed) == ("1 turn taken back", True)
        assert texts(shell)[:3] == ["one", "one", '***CALL_TOOL nothing {"a": 1}']
        assert len(texts(shell)) == 6
        assert "there are only 2 turns" in await shell.refused("/history rewind 3")
        assert await shell("/history rewind 2") == "2 turns taken back"
        assert texts(shell) == []
        await shell("again")
        assert texts(shell) == ["again", "again"]


async def test_a_file_is_called_after_its_agent_in_any_language(world: DeskWorld) -> None:
    world.write("ann", default="true", name="'größe .x y'")
    async with world.sat() as shell:
        await shell("one")
        assert "größe--x-y-history.json" in await shell("/history save")
        assert (world.directory / "größe--x-y-history.json").is_file()


async def test_nothing_is_reported_that_the_session_may_lose(
    world: DeskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("ann", default="true")
    (world.directory / "talk.md").write_text("---USER\nfirst\n---ASSISTANT\nsecond\n")
    async with world.sat(kept=True) as shell:
        await shell("hello")
        session = shell.controller.session
        assert session is not None
        safe = SessionJournal.barrier

        async def full(journal: SessionJournal) -> None:
            raise SessionError("the disk is full")

        for line in ("/clear", "/history load talk.md", "/compact"):
            monkeypatch.setattr(SessionJournal, "barrier", full)
            assert "the disk is full" in await shell.refused(line)
            monkeypatch.setattr(SessionJournal, "barrier", safe)
        # The next turn writes what could not be written.
        await shell("again")
        kept = session.journal.history("ann")
        assert kept is not None
        assert [one.text for one in kept] == texts(shell)
        assert texts(shell)[:2] == ["first", "second"]
