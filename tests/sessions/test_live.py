"""Live agents in a session: written down before it is shown, and the same again when resumed."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.patience import pass_seconds
from tests.sessions.live_world import live, world_of
from tests.sessions.refusing_journal import Refusing
from tests.sessions.session_world import START, sqlite_log, store_in, texts
from tests.workflows.scripted_world import World

from fast_agent.agents.events import ModelAnswered, ToolFinished, TurnFinished, TurnStarted
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.errors import RunError, SessionError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message
from fast_agent.models.script import Fail
from fast_agent.sessions.event import HistoryCompacted
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.agents.events import Event
    from fast_agent.sessions.journal import SessionJournal

pytestmark = pytest.mark.anyio
NAMES = ("lead", "kid", "pal", "flow")


@pytest.mark.spec("SESSION-4")
async def test_a_resumed_session_goes_on_where_it_was(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        async with live(world_of(), session.journal) as runtime:
            await runtime.agent("lead").send("go first")
            await runtime.agent("lead").send("hello")
            await runtime.agent("flow").send("through")
            histories = {name: list(runtime.agent(name).history) for name in NAMES}
            entries = session.journal.transcript.entries
        assert len(entries) == 2 + 1 + 1 + 2 + 1
    with store.open(session.id) as again:
        async with live(world_of(), again.journal) as runtime:
            assert {name: list(runtime.agent(name).history) for name in NAMES} == histories
            assert again.journal.transcript.entries == entries
            assert await runtime.agent("lead").send("bye") == "echo bye"
            assert list(runtime.agent("lead").history)[:-2] == histories["lead"]
            whole = again.journal.transcript
            assert whole.entries[:-1] == entries
            assert check_validity(whole.messages()) == []
    assert [turn.agent for turn in store.read(session.id)[1].turns] == [
        *("lead", "lead", "flow", "lead")
    ]


@pytest.mark.spec("SESSION-17")
@pytest.mark.parametrize("every_turn", [True, False], ids=["each turn to the disk", "not yet"])
async def test_what_was_used_is_counted_on(tmp_path: Path, *, every_turn: bool) -> None:
    store = store_in(tmp_path) if every_turn else SessionStore(tmp_path, now=lambda: START)
    with store.create() as session:
        async with live(world_of(), session.journal) as runtime:
            await runtime.agent("lead").send("go first")
            await runtime.agent("flow").send("through")
            conversation, used = runtime.new_conversation(journal=session.journal), runtime.usage
        assert (used.requests, used.tool_calls) == (7, 2)
        assert conversation.usage == used
        assert session.journal.used == astuple(used)
    assert store.read(session.id)[1].used == astuple(used)
    with store.open(session.id) as again:
        async with live(world_of(), again.journal) as runtime:
            before = runtime.new_conversation(journal=again.journal)
            assert before.usage == used
            await runtime.agent("kid").send("more")
            assert runtime.new_conversation(journal=again.journal).usage.requests == 8
            assert runtime.usage.requests == 1  # what this run used
        again.rewind(1)
        assert again.journal.used == again.state.used != astuple(used)


@pytest.mark.spec("SESSION-2")
async def test_nothing_is_reported_before_it_is_written(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    reported: list[str] = []
    with store.create() as session:

        def listen(event: Event) -> None:
            state = store.read(session.id)[1]
            said = [message for entry in state.entries() for message in entry.messages]
            match event:
                case TurnStarted() | ModelAnswered():
                    assert event.message in said
                case ToolFinished():
                    assert event.result in [one for message in said for one in message.tool_results]
                case TurnFinished():
                    assert event.message in said
                    assert event.origin.turn_id not in [
                        turn.turn_id for turn in state.open_turns if turn.ended is None
                    ]
                case _:
                    return
            reported.append(type(event).__name__)

        async with live(world_of(), session.journal, listener=listen) as runtime:
            await runtime.agent("lead").send("go")
            await runtime.agent("flow").send("x")
    assert reported.count("ToolFinished") == 3
    assert reported.count("TurnFinished") == 3 + 3


@pytest.mark.spec("SESSION-9")
async def test_children_stand_in_the_transcript_in_call_order_live_and_resumed(
    tmp_path: Path,
) -> None:
    world = world_of()

    async def pause(agent: str) -> None:
        if agent == "kid":
            await anyio.sleep(0.02)

    world.pause = pause
    store = store_in(tmp_path)
    with store.create() as session:
        async with live(world, session.journal) as runtime:
            await runtime.agent("lead").send("go")
        live_order = [entry.agent for entry in session.journal.transcript]
    ended = [
        type(event).__name__ + event.origin.agent
        for event in world.events
        if isinstance(event, TurnFinished)
    ]
    assert ended == ["TurnFinishedpal", "TurnFinishedkid", "TurnFinishedlead"]
    assert live_order == ["kid", "pal", "lead"]
    _, state = store.read(session.id)
    assert [entry.agent for entry in state.entries()] == live_order
    assert all(entry.parent_call_id for entry in state.entries()[:2])


async def test_clearing_loading_and_adopting_are_written(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    seed = Message("user", Message.user("seed").content, is_template=True)
    with store.create() as session:
        async with live(world_of(), session.journal) as runtime:
            kid = runtime.agent("kid")
            kid.load_history([seed, Message.assistant("ok")])
            await kid.send("one")
            assert session.history("kid") == list(kid.history)
            kid.clear()
            assert session.history("kid") == list(kid.history) == [seed]
            kid.add_external([Message.user("from afar"), Message.assistant("thanks")])
            assert session.history("kid") == list(kid.history)
            kid.clear(all=True)
            assert session.history("kid") == list(kid.history) == []
            await kid.send("two")
            flow = runtime.agent("flow")
            await flow.send("x")
            flow.clear()
            assert session.history("flow") == []
            assert list(texts(session.history("kid"))) == ["two", "two", "x", "x"]


async def test_templates_of_a_card_are_written_once_and_stay_templates(tmp_path: Path) -> None:
    (tmp_path / "seed.txt").write_text("---USER\nrule\n---ASSISTANT\nyes\n")
    config = AgentConfig(name="ann", instruction="ann", messages=("seed.txt",))
    store = store_in(tmp_path)
    with store.create() as session:
        async with World().runtime(config, workspace=tmp_path, journal=session.journal) as runtime:
            await runtime.agent("ann").send("one")
    (tmp_path / "seed.txt").write_text("---USER\nother\n---ASSISTANT\nno\n")
    with store.open(session.id) as again:
        async with World().runtime(config, workspace=tmp_path, journal=again.journal) as runtime:
            ann = runtime.agent("ann")
            assert list(texts(list(ann.history))) == ["rule", "yes", "one", "one"]
            ann.clear()
            assert list(texts(again.history("ann"))) == ["rule", "yes"]


async def test_an_agent_that_remembers_nothing_is_only_in_the_transcript(tmp_path: Path) -> None:
    config = AgentConfig(name="ann", instruction="ann", use_history=False)
    with store_in(tmp_path).create() as session:
        async with World().runtime(config, journal=session.journal) as runtime:
            await runtime.agent("ann").send("one")
        assert session.state.agents == ()
        assert len(session.journal.transcript) == 1


async def test_failed_and_cancelled_turns_are_resumed_as_they_were_left(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    world = World({"kid": ["fine", Fail("broken")]})
    with store.create() as session:
        async with live(world, session.journal) as runtime:
            kid, pal = runtime.agent("kid"), runtime.agent("pal")
            await kid.send("one")
            with pytest.raises(Exception, match="broken"):
                await kid.send("two")

            async def pause(agent: str) -> None:
                pass_seconds(10)
                await anyio.sleep_forever()

            world.pause = pause
            with anyio.move_on_after(10):
                await pal.send("never")
            with anyio.move_on_after(10):
                await runtime.agent("flow").send("neither")
            histories = {name: list(runtime.agent(name).history) for name in NAMES}
    assert len(histories["kid"]) == 4
    assert list(texts(histories["pal"])) == ["never", "[cancelled before an answer]"]
    assert len(histories["flow"]) == 2
    with store.open(session.id) as again:
        assert {name: again.history(name) for name in NAMES} == histories
        assert [turn.stop_reason for turn in again.state.turns] == [
            *("endTurn", "error", "cancelled", "cancelled")
        ]


@pytest.mark.spec("SESSION-6")
async def test_live_agents_go_back_with_the_session(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        async with live(world_of(), session.journal) as runtime:
            kid = runtime.agent("kid")
            for text in ("one", "two", "three"):
                await kid.send(text)
            session.rewind(1)
            runtime.restore()
            assert list(texts(list(kid.history))) == ["one", "one"]
            assert len(session.journal.transcript) == 1
            await kid.send("other")
            assert list(texts(session.history("kid"))) == ["one", "one", "other", "other"]
            assert list(texts(list(session.journal.transcript.messages()))) == [
                *("one", "one", "other", "other")
            ]
            session.rewind(0)
            runtime.restore()
            assert list(kid.history) == []


async def test_agents_made_anew_in_one_session_remember_all_of_it(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        for number in range(3):
            async with live(world_of(), session.journal) as runtime:
                kid = runtime.agent("kid")
                assert len(kid.history) == 2 * number
                await kid.send(f"{number}")
        assert list(texts(session.history("kid"))) == ["0", "0", "1", "1", "2", "2"]


@pytest.mark.spec("SESSION-11", "SESSION-12")
async def test_a_full_disk_stops_the_turn_and_the_log_catches_up_later(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    world = world_of()
    with store.create() as session:
        async with live(world, session.journal) as runtime:
            kid = runtime.agent("kid")
            await kid.send("one")
            limit(session.journal, 1)
            world.events.clear()
            for _ in range(3):
                with pytest.raises(SessionError, match="the disk is full") as caught:
                    await kid.send("x" * 9000)
                assert caught.value.hint == "free some space and send the message again"
            assert [
                type(one).__name__ for one in world.events if not isinstance(one, TurnFinished)
            ] == []
            assert list(texts(list(kid.history))) == ["one", "one"]
            limit(session.journal, 1_000_000)
            await kid.send("two")
            assert list(texts(list(kid.history))) == ["one", "one", "two", "two"]
            histories = list(kid.history)
    with store.open(session.id) as again:
        assert again.history("kid") == histories


@pytest.mark.parametrize("written", range(3, 11))
async def test_whichever_event_cannot_be_written_log_and_memory_agree_in_the_end(
    tmp_path: Path, written: int
) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        journal = Refusing(session.journal, written)
        async with live(world_of(), journal) as runtime:
            lead = runtime.agent("lead")
            await lead.send("hello")
            with pytest.raises((SessionError, RunError)):
                await lead.send("go")
            assert check_validity(lead.history) == []
            journal.refuses = False
            await lead.send("again")
            assert session.history("lead") == list(lead.history)
            history = list(lead.history)
    with store.open(session.id) as again:
        assert again.history("lead") == history


async def test_a_turn_under_way_is_in_no_history_taken_up_meanwhile(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        world = world_of()
        asked = anyio.Event()

        async def pause(agent: str) -> None:
            asked.set()
            await anyio.sleep(0.02)

        async with live(world, session.journal) as runtime:
            kid = runtime.agent("kid")
            await kid.send("one")
            world.pause = pause
            async with anyio.create_task_group() as group:
                group.start_soon(kid.send, "two")
                await asked.wait()
                assert list(texts(list(session.journal.history("kid") or ()))) == ["one", "one"]
            assert session.journal.history("kid") == kid.history


def limit(journal: SessionJournal, pages: int) -> None:
    """Let the file grow to a number of pages only, as on a full disk."""
    sqlite_log(journal)._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_compaction_is_kept_and_taken_back_with_its_turns(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        async with live(world_of(), session.journal) as runtime:
            lead = runtime.agent("lead")
            assert isinstance(lead, LlmAgent)
            await lead.send("hello")
            compaction = await lead.compact()
            await lead.send("more")
            view = list(lead.conversation.view)
            history = list(lead.history)
        assert len(history) == 4
        assert view[0].text.endswith(f"{compaction.summary}\nmore")
    with store.open(session.id) as again:
        async with live(world_of(), again.journal) as runtime:
            conversation = runtime.agent("lead").conversation
            assert conversation.compaction == compaction
            assert list(conversation.view) == view
            assert list(conversation.history) == history
            again.rewind(1)  # to the end of the first turn, before the compaction
            runtime.restore()
            conversation = runtime.agent("lead").conversation
            assert conversation.compaction is None
            assert list(conversation.view) == history[:2]
    with store.fork(session.id) as forked:
        assert forked.journal.compaction("lead") is None


async def test_a_compaction_that_cannot_be_written_is_written_later(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            lead = runtime.agent("lead")
            assert isinstance(lead, LlmAgent)
            await lead.send("hello")
            journal.stop()
            compaction = await lead.compact()
            journal.refuses = False
            await lead.send("more")
    with store.open(session.id) as again:
        kept = HistoryCompacted("lead", compaction.start, compaction.summary)
        assert again.journal.compaction("lead") == kept
        assert len(again.journal.history("lead") or ()) == 4
