"""When turns wait for the disk, and what is written at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sessions.live_world import live, world_of
from tests.sessions.refusing_journal import Refusing
from tests.sessions.session_world import plain_turn, store_in, write

from fast_agent.errors import SessionError
from fast_agent.runtime.events import ModelAnswered, TextStreamed
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.runtime.events import Event

pytestmark = pytest.mark.anyio


async def test_a_turn_waits_for_no_disk_before_its_end(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            await runtime.agent("lead").send("go")
            assert len(journal.settled) == 1
            await runtime.agent("flow").send("x")
            assert len(journal.settled) == 2
        write(session, plain_turn("z", "a", "b"))


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.spec("SESSION-18")
async def test_the_disk_is_waited_for_once_in_a_while_where_turns_follow_each_other_quickly(
    tmp_path: Path,
) -> None:
    clock = Hands()
    with SessionStore(tmp_path, disk_seconds=1.0, now=clock).create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            kid = runtime.agent("kid")
            for gained, settled in ((0.0, 1), (0.5, 1), (0.49, 1), (0.02, 2), (0.0, 2), (-9, 3)):
                clock.now += gained
                await kid.send("hi")
                assert len(journal.settled) == settled


@pytest.mark.spec("SESSION-18")
async def test_every_turn_is_on_the_disk_where_that_is_asked_for(tmp_path: Path) -> None:
    with SessionStore(tmp_path, disk_seconds=0, now=Hands()).create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            for number in range(3):
                await runtime.agent("kid").send("hi")
                assert len(journal.settled) == number + 1


async def test_much_that_called_agents_say_is_tidied_up_before_the_turn_above_them_ends(
    tmp_path: Path,
) -> None:
    with SessionStore(tmp_path, now=Hands()).create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            await runtime.agent("lead").send("go")
            assert len(journal.settled) == 1
            await runtime.agent("lead").send("go " + "x" * 2_500_000)
        agents = [
            entry.agent
            for entry in session.state.entries()
            for event in journal.settled[1:]
            if entry.turn_id == event.turn_id
        ]
        assert set(agents) <= {"kid", "pal"}
        assert agents
        assert not journal.is_due(top=True)


async def test_an_answer_nobody_hears_of_is_written_with_the_end_of_its_turn(
    tmp_path: Path,
) -> None:
    with store_in(tmp_path).create() as session:
        journal = Refusing(session.journal, None)
        world = world_of()
        async with live(world, journal, listener=None) as quiet:
            await quiet.agent("kid").send("hi")
        assert journal.written == [["TurnBegan"], ["MessageAdded", "TurnEnded"]]


async def test_the_last_answer_is_heard_of_once_it_is_written_with_the_end(
    tmp_path: Path,
) -> None:
    with store_in(tmp_path).create() as session:
        journal = Refusing(session.journal, None)
        heard: list[tuple[str, int]] = []

        def hear(event: Event) -> None:
            if not isinstance(event, TextStreamed):
                heard.append((type(event).__name__, len(journal.written)))

        async with live(world_of(), journal, listener=hear) as runtime:
            await runtime.agent("kid").send("hi")
        assert journal.written == [["TurnBegan"], ["MessageAdded", "TurnEnded"]]
        assert heard == [
            ("TurnStarted", 1),
            ("ModelRequested", 1),
            ("ModelAnswered", 2),
            ("TurnFinished", 2),
        ]


async def test_a_last_answer_that_cannot_be_written_is_not_heard_of(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        journal = Refusing(session.journal, 1)
        heard: list[Event] = []
        async with live(world_of(), journal, listener=heard.append) as runtime:
            with pytest.raises(SessionError):
                await runtime.agent("kid").send("hi")
            assert not any(isinstance(event, ModelAnswered) for event in heard)
            journal.refuses = False
            await runtime.agent("kid").send("again")
            assert session.history("kid") == list(runtime.agent("kid").history)
