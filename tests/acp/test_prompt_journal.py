"""Prompt journal: a prompt is written with what comes of it, and before anything else happens."""

from __future__ import annotations

from math import inf
from threading import Event
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.to_thread import run_sync
from tests.patience import PATIENCE, until
from tests.sessions.live_world import live, world_of
from tests.sessions.refusing_journal import Refusing
from tests.sessions.session_world import began, plain_turn

from fast_agent.acp.opening import PromptJournal
from fast_agent.errors import SessionError
from fast_agent.messages.history import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.session import Session

pytestmark = pytest.mark.anyio


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session that is brought to the disk no more."""
    with SessionStore(tmp_path, disk_seconds=inf).create() as session:
        session.journal.record_durably(*plain_turn("t0", "who", "me", agent="other"))
        yield session


async def test_a_turn_that_waits_for_nothing_is_written_at_once(session: Session) -> None:
    inner = Refusing(session.journal, None)
    async with live(world_of(), PromptJournal(inner)) as runtime:
        for text in ("one", "two"):
            assert await runtime.agent("kid").send(text) == text
    assert inner.written == [["TurnBegan", "MessageAdded", "TurnEnded"]] * 2
    assert all(turn.ended for turn in session.state.turns)


async def test_what_begins_is_written_as_soon_as_it_waits(session: Session) -> None:
    journal = PromptJournal(session.journal)
    journal.record(began("t1", "hello"))
    assert len(session.state.turns) == 1
    await anyio.lowlevel.checkpoint()
    assert session.state.turns[-1].messages()[0].text == "hello"
    journal.record(*plain_turn("t1", "hello", "there")[1:])
    assert [one.text for one in session.history("ann")] == ["hello", "there"]


async def test_what_others_started_and_what_follows_are_not_held(session: Session) -> None:
    inner = Refusing(session.journal, None)
    journal = PromptJournal(inner)
    journal.record(began("t1"))
    journal.record(began("t2", parent="t1", depth=1))
    assert inner.written == [["TurnBegan", "TurnBegan"]]
    journal.record(began("t3"))
    journal.history("ann")
    assert inner.written == [["TurnBegan", "TurnBegan"], ["TurnBegan"]]
    await anyio.lowlevel.checkpoint()
    assert len(inner.written) == 2


async def test_where_nothing_can_be_written_only_the_first_model_is_asked(
    session: Session,
) -> None:
    inner, world = Refusing(session.journal, 1), world_of()
    async with live(world, PromptJournal(inner)) as runtime:
        kid = runtime.agent("kid")
        await kid.send("one")
        for text in ("two", "three", "four"):
            with pytest.raises(SessionError, match="no more"):
                await kid.send(text)
        assert len(world.asked("kid")) == 2
        inner.refuses = False
        await kid.send("five")
        texts = [message.text for message in kid.history]
    assert texts == ["one", "one", "two", "two", "five", "five"]
    assert [message.text for message in session.history("kid")] == texts
    assert check_validity(session.history("kid")) == []


async def test_nobody_waits_for_a_thread_that_waits_for_the_disk(session: Session) -> None:
    waits, go_on = Event(), Event()

    class Slow(Refusing):
        def record_durably(self, *events: SessionEvent) -> None:
            waits.set()
            assert go_on.wait(PATIENCE)
            super().record_durably(*events)

    inner = Slow(session.journal, None)
    journal = PromptJournal(inner)

    async def settle() -> None:
        await run_sync(journal.record_durably, *plain_turn("t1", "one", "two"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(settle)
        try:
            await until(waits.is_set)
            journal.record(began("t2"))
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert inner.written == []
        finally:
            go_on.set()
    await until(lambda: len(inner.written) == 2)
    assert inner.written == [["TurnBegan", "MessageAdded", "TurnEnded"], ["TurnBegan"]]
    assert [turn.turn_id for turn in session.state.turns] == ["t0", "t1", "t2"]
