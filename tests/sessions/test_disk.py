"""When turns wait for the disk, and what is written at once."""

from __future__ import annotations

from random import Random
from shutil import copyfile
from typing import TYPE_CHECKING

import pytest
from tests.sessions.live_world import live, world_of
from tests.sessions.refusing_journal import Refusing
from tests.sessions.session_world import plain_turn, sqlite_log, store_in, write

from fast_agent.agents.events import ModelAnswered, TextStreamed
from fast_agent.errors import SessionError
from fast_agent.messages.history import check_validity
from fast_agent.sessions.sqlite.files import DIRECTORY
from fast_agent.sessions.sqlite.log import SqliteLog
from fast_agent.sessions.state import INTERRUPTED, state_of
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.agents.events import Event
    from fast_agent.messages.message import Message
    from fast_agent.sessions.session import Session

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


async def test_the_file_itself_is_brought_to_the_disk_with_the_first_turn(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        async with live(world_of(), session.journal) as runtime:
            await runtime.agent("kid").send("hi")
        alone = tmp_path / "alone"
        (alone / DIRECTORY).mkdir(parents=True)
        name = f"{session.id}.sqlite"
        copyfile(tmp_path / DIRECTORY / name, alone / DIRECTORY / name)
        with SessionStore(alone).open(session.id) as copy:
            assert copy.history("kid") == session.history("kid") != []


def after_a_loss_of_power(home: Path, session: Session, wal: bytes) -> tuple[int, list[Message]]:
    """Return what is left of a session where so much of what was not waited for is on the disk."""
    (home / DIRECTORY).mkdir(parents=True)
    name = f"{session.id}.sqlite"
    copyfile(sqlite_log(session.journal).path, home / DIRECTORY / name)
    (home / DIRECTORY / f"{name}-wal").write_bytes(wal)
    state = SqliteLog.open(home / DIRECTORY / name, lambda: 0.0)
    last = state_of(state).last
    state.close()
    with SessionStore(home).open(session.id) as left:
        return last, left.history("ann")


@pytest.mark.spec("SESSION-18")
@pytest.mark.parametrize("seed", range(8))
def test_of_what_was_not_waited_for_a_loss_of_power_leaves_the_beginning(
    tmp_path: Path, seed: int
) -> None:
    draw = Random(seed)
    clock = Hands()
    with SessionStore(tmp_path / "whole", now=clock).create() as session:
        first, *others = (plain_turn(str(n), f"asked {n}", "told " * (n * 40)) for n in range(40))
        session.journal.record(*first[:-1])
        session.journal.record_durably(first[-1])
        write(session, *others)
        whole = session.history("ann")
        log = sqlite_log(session.journal).path
        wal = log.with_name(f"{log.name}-wal").read_bytes()
        assert len(wal) > 200_000
        cut = wal[: draw.randrange(len(wal))]
        hole = draw.randrange(len(wal) // 4096) * 4096
        holed = wal[:hole] + bytes(4096) + wal[hole + 4096 :]
        for number, left in enumerate((cut, holed)):
            last, history = after_a_loss_of_power(tmp_path / str(number), session, left)
            assert 3 <= last < 3 + 3 * len(others)
            assert check_validity(history) == []
            there = [one for one in history if one.text != INTERRUPTED]
            assert there == whole[: len(there)]
            assert len(there) >= 2 * (last // 3)
