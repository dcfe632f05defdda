"""Sessions: kept, listed, loaded, resumed, forked, closed and deleted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest
from acp import RequestError
from tests.acp.editor_world import PROGRAM, Editor, connected, started, work, write_card
from tests.patience import until

from fast_agent.acp import server
from fast_agent.models.providers import provider
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.spec("ACP-13")
async def test_a_session_is_loaded_with_everything_said_in_it(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "a.md", "name: a", "default: true"),
        write_card(tmp_path, "b.md", "name: b", "resource_tools: true"),
    )
    async with connected(tmp_path, *cards) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
        await there.agent.set_session_mode(session_id=session, mode_id="b")
        await there.prompt(session, "***CALL_TOOL nowhere")
    async with connected(tmp_path, *cards) as there:
        loaded = await there.agent.load_session(cwd=str(there.cwd), session_id=session)
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "b"
        assert there.editor.said("user_message_chunk") == "hello***CALL_TOOL nowhere"
        assert there.editor.said().startswith("hello")
        call, ended = there.editor.of("tool_call")[0], there.editor.of("tool_call_update")[0]
        assert call["title"] == "nowhere"
        assert (ended["toolCallId"], ended["status"]) == (call["toolCallId"], "failed")
        shown = len(there.editor.updates)
        await there.agent.set_session_mode(session_id=session, mode_id="a")
        await there.prompt(session, "again")
        assert len(there.editor.updates) > shown
    _, state = SessionStore(there.home).read(session)
    assert [message.text for message in state.history("a") or []] == [
        "hello",
        "hello",
        "again",
        "again",
    ]


async def test_what_the_first_prompt_needs_is_imported_once_a_session_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(provider, "warm", imported.append)
    async with connected(tmp_path, model="generic.m") as there:
        await there.open()
        await until(lambda: imported == ["generic"])
    async with connected(tmp_path, model="passthrough") as there:
        await there.prompt((await there.open()).session_id, "hello")
    assert imported == ["generic"]


@pytest.mark.spec("ACP-13")
async def test_a_session_is_resumed_without_telling_it_again(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
    async with connected(tmp_path) as there:
        resumed = await there.agent.resume_session(cwd=str(there.cwd), session_id=session)
        assert resumed.modes is not None
        assert resumed.modes.current_mode_id == "agent"
        assert there.editor.of("user_message_chunk") == []
        await there.prompt(session, "/history")
        assert "hello" in there.editor.said()


@pytest.mark.spec("ACP-13")
async def test_a_fork_goes_on_from_there_and_leaves_the_other(tmp_path: Path) -> None:
    cards = (
        write_card(tmp_path, "agent.md", "name: agent", "default: true"),
        write_card(tmp_path, "other.md", "name: other"),
    )
    async with connected(tmp_path, *cards) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "one")
        await there.agent.set_session_mode(session_id=session, mode_id="other")
        await there.prompt(session, "one more")
        unused = await there.agent.fork_session(cwd=str(there.cwd), session_id=session)
        assert unused.modes is not None
        assert unused.modes.current_mode_id == "other"
        await there.agent.set_session_mode(session_id=session, mode_id="agent")
        fork = await there.agent.fork_session(cwd=str(there.cwd), session_id=session)
        assert fork.session_id != session
        await there.agent.set_session_mode(session_id=fork.session_id, mode_id="agent")
        await there.prompt(fork.session_id, "two")
        await there.prompt(session, "three")
    store = SessionStore(there.home)
    histories = [
        [one.text for one in store.read(name)[1].history("agent") or [] if one.role == "user"]
        for name in (session, fork.session_id, unused.session_id)
    ]
    assert histories == [["one", "three"], ["one", "two"], ["one"]]


@pytest.mark.spec("ACP-13")
async def test_sessions_are_listed_by_directory_and_titled(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with connected(tmp_path) as there:
        session = (await there.open()).session_id
        await there.open()
        other = (await there.agent.new_session(cwd=str(elsewhere))).session_id
        await there.prompt(session, "first  words")
        await there.prompt(other, "second words")
        title = (await there.editor.until("session_info_update"))[0]["title"]
        assert title == "first words"
        found = (await there.agent.list_sessions()).sessions
        assert {one.session_id: (one.title, one.cwd) for one in found} == {
            session: ("first words", str(there.cwd)),
            other: ("second words", str(elsewhere)),
        }
        here = (await there.agent.list_sessions(cwd=str(elsewhere))).sessions
        assert [one.session_id for one in here] == [other]
        with pytest.raises(RequestError, match="cursor"):
            await there.agent.list_sessions(cursor="x")


@pytest.mark.spec("ACP-13")
async def test_a_closed_session_is_open_no_more_and_can_be_loaded(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
        await there.agent.close_session(session_id=session)
        with pytest.raises(RequestError, match="there is no open session"):
            await there.prompt(session, "hello")
        await there.agent.load_session(cwd=str(there.cwd), session_id=session)
        await there.prompt(session, "hello")


@pytest.mark.spec("ACP-13")
async def test_closing_cancels_what_runs(tmp_path: Path) -> None:
    import anyio

    async with connected(tmp_path, model="slow?seconds=600") as there:
        session = (await there.open()).session_id
        ended: list[str] = []

        async def ask() -> None:
            ended.append((await there.prompt(session, "hello")).stop_reason)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await there.begun(session)
            await there.agent.close_session(session_id=session)
        assert ended == ["cancelled"]


@pytest.mark.spec("ACP-13")
async def test_a_session_in_which_nothing_was_said_leaves_nothing(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        await there.open()
        assert len(SessionStore(there.home).list()) == 1
    assert SessionStore(there.home).list() == []


async def test_loading_a_session_that_is_open_opens_it_anew(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
        await there.agent.load_session(cwd=str(there.cwd), session_id=session)
        assert there.editor.said("user_message_chunk") == "hello"
        await there.prompt(session, "again")


@pytest.mark.spec("ACP-14")
async def test_each_session_has_a_directory_of_its_own(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with connected(tmp_path, shell=True) as there:
        here = (await there.open()).session_id
        away = (await there.agent.new_session(cwd=str(elsewhere))).session_id
        for session in (here, away):
            await there.prompt(session, '***CALL_TOOL execute {"command": "pwd"}')
        updates = there.editor.of("tool_call_update")
        done = [one for one in updates if one.get("status") == "completed"]
        reported = [one["content"][0]["content"]["text"] for one in done]
        assert [text.splitlines()[0] for text in reported] == [str(there.cwd), str(elsewhere)]


@pytest.mark.parametrize("wrong", ["relative", "/no/such/place", "/etc/passwd", "/a\0b"])
async def test_a_directory_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    async with connected(tmp_path) as there:
        with pytest.raises(RequestError, match="cwd"):
            await there.agent.new_session(cwd=wrong)


@pytest.mark.parametrize("wrong", ["nowhere", "../../etc", ""])
async def test_a_session_that_is_not_kept_is_refused(tmp_path: Path, wrong: str) -> None:
    async with connected(tmp_path) as there:
        for ask in (there.agent.load_session, there.agent.resume_session, there.agent.fork_session):
            with pytest.raises(RequestError, match="there is no session"):
                await ask(cwd=str(there.cwd), session_id=wrong)


async def test_without_keeping_nothing_is_offered_or_written(tmp_path: Path) -> None:
    async with connected(tmp_path, kept=False) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
        with pytest.raises(RequestError, match="sessions are not saved"):
            await there.agent.load_session(cwd=str(there.cwd), session_id=session)
    assert not (there.home / "sessions").exists()


@pytest.mark.spec("ACP-21")
async def test_there_is_room_for_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_SESSIONS", 2)
    async with connected(tmp_path) as there:
        first = (await there.open()).session_id
        await there.open()
        with pytest.raises(RequestError, match="2 sessions are open"):
            await there.open()
        await there.agent.close_session(session_id=first)
        assert (await there.prompt((await there.open()).session_id, "on")).stop_reason == "end_turn"


@pytest.mark.spec("TR-G8.1")
async def test_a_session_goes_on_with_agents_that_may_do_more_only_once_the_person_agreed(
    tmp_path: Path,
) -> None:
    cards = work(tmp_path) / ".fast-agent" / "agent-cards"
    cards.mkdir(parents=True)
    card = cards / "a.md"
    card.write_text("---\nmodel: passthrough\n---\nHi.\n")
    async with started(tmp_path) as there:
        session = (await there.open()).session_id
        await there.prompt(session, "hello")
    card.write_text("---\nmodel: passthrough\nshell: true\n---\nHi.\n")
    environ = {**os.environ, "FAST_AGENT_HOME": str(there.home), "HOME": str(there.home)}
    await anyio.run_process([str(PROGRAM), "trust", "--yes"], cwd=there.cwd, env=environ)
    editor = Editor(choose=None)
    async with started(tmp_path, editor=editor) as there:
        await there.agent.load_session(cwd=str(there.cwd), session_id=session)
        assert editor.asked == [], "opening it asks nothing"
        with pytest.raises(RequestError, match="its agents may do more than when it was kept"):
            await there.prompt(session, "again")
        (asked,) = editor.asked
        assert asked["options"] == ["Go on", "No"]
        shown = asked["toolCall"]["content"][0]["content"]["text"]
        assert "any command the model chooses" in shown
        editor.choose = "reject_once"
        with pytest.raises(RequestError, match="nothing was sent"):
            await there.prompt(session, "again")
        editor.choose = "allow_once"
        await there.prompt(session, "again")
        await there.prompt(session, "once more")
        assert len(editor.asked) == 3
        assert editor.said().endswith("againonce more")
    async with started(tmp_path, editor=editor) as there:
        await there.agent.resume_session(cwd=str(there.cwd), session_id=session)
        await there.prompt(session, "later")
        assert len(editor.asked) == 3, "it is not asked about again"
    _, state = SessionStore(there.home).read(session)
    texts = [message.text for message in state.history("a") or []]
    assert texts[::2] == ["hello", "again", "once more", "later"]
