"""Damaged sessions: nothing else than what was said is given for it, and what is whole is saved."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, replace
from random import Random
from shutil import copytree
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.sessions.session_world import (
    began,
    calling,
    plain_turn,
    result,
    store_in,
    texts,
    tool_turn,
    write,
)

from fast_agent.errors import SessionError
from fast_agent.messages.message import Message
from fast_agent.sessions.event import (
    BlockListed,
    HistoryCleared,
    HistoryCompacted,
    HistoryExtended,
    HistoryReplaced,
    MessageAdded,
    Row,
    ToolAnswered,
    TurnEnded,
)
from fast_agent.sessions.integrity import chained_sum, is_chained, is_whole, summed
from fast_agent.sessions.sqlite.files import DIRECTORY
from fast_agent.sessions.sqlite.schema import STEPS, version_of
from fast_agent.sessions.state import INTERRUPTED, SessionState

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.sessions.event import Logged
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore

SEED = 20261122
FLIPS = 1_200


def filled(store: SessionStore, cwd: Path) -> str:
    """Make a session with events of every kind, and texts of every sort."""
    with store.create("the title", cwd=cwd) as session:
        write(session, plain_turn("a", "what is the capital of Québec?", "Québec — “the city”"))
        write(session, tool_turn("b"))
        write(session, [HistoryExtended("bob", (Message.user("hi"), Message.assistant("ho")))])
        parent = began("p", "ask the others")
        child = [
            began("c", "you there?", agent="bob", parent="call-1", depth=1),
            MessageAdded("c", 1, Message.assistant("yes, here")),
            TurnEnded("c", "endTurn", kept=True, place="held"),
        ]
        rest = [
            ToolAnswered("p", result("1", "yes, here")),
            BlockListed(("c",)),
            MessageAdded("p", 3, Message.assistant("they are there " * 90)),
            TurnEnded("p", "endTurn", kept=True, used=(1, 2, 3, 4, 5, 6)),
        ]
        write(session, [parent, MessageAdded("p", 1, calling("1")), *child, *rest])
        write(session, plain_turn("x", "to be forgotten", "gone"))
        session.rewind("p")
        write(session, [HistoryReplaced("eve", (Message.user("one"), Message.assistant("two")))])
        write(session, [HistoryCleared("eve", all=True)])
        for number in range(12):
            write(session, plain_turn(f"t{number}", f"question {number} " * 20, f"answer {number}"))
        write(session, [HistoryCompacted("ann", 2, "they talked")])
    return session.id


def said(session: Session) -> dict[str, Any]:
    """Everything a session says."""
    state = session.state
    return {
        "entries": state.entries(),
        "compactions": {agent: state.compaction(agent) for agent in state.agents},
        "histories": {agent: state.history(agent) for agent in state.agents},
        "title": state.title,
        "turns": [(turn.turn_id, turn.stop_reason, turn.used, turn.place) for turn in state.turns],
        "facts": replace(session.facts, parent=None),
    }


@dataclass
class Place:
    """A session in a directory of its own, that can be damaged and put right again."""

    home: Path
    session_id: str
    store: SessionStore

    @property
    def path(self) -> Path:
        return self.home / DIRECTORY / f"{self.session_id}.sqlite"

    def execute(self, *statements: str) -> None:
        connection = sqlite3.connect(self.path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    def restore(self, data: bytes | bytearray) -> None:
        for file in self.path.parent.iterdir():
            file.unlink()
        self.path.write_bytes(data)


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Place:
    store = store_in(tmp_path)
    return Place(tmp_path, filled(store, tmp_path), store)


def positions(data: bytes, random: Random, count: int) -> list[int]:
    """Choose bytes: all heads of pages, and others of every page alike."""
    page = int.from_bytes(data[16:18], "big")
    heads = [start + byte for start in range(0, len(data), page) for byte in range(12)]
    heads += range(100)
    pages = range(0, len(data), page)
    each = (count - len(heads)) // len(pages)
    others = [start + random.randrange(page) for start in pages for _ in range(each)]
    return sorted({*heads, *others})


def problem_of(place: Place, expected: dict[str, Any], what: str) -> str | None:
    """Return why a session cannot be opened; None where it can, and says what it said."""
    try:
        with place.store.open(place.session_id) as session:
            assert said(session) == expected, what
    except SessionError as problem:
        return problem.message
    return None


@pytest.mark.spec("SESSION-19")
def test_a_flipped_byte_never_gives_other_words_without_a_word(place: Place) -> None:
    with place.store.open(place.session_id) as session:
        expected = said(session)
    whole = place.path.read_bytes()
    with sqlite3.connect(place.path) as connection:
        everything = {
            text for (text,) in connection.execute("SELECT data FROM events WHERE data NOT NULL")
        }
    connection.close()
    random = Random(SEED)
    reported = 0
    for position in positions(whole, random, FLIPS):
        data = bytearray(whole)
        data[position] ^= random.randrange(1, 256)
        place.restore(data)
        what = f"seed {SEED}, byte {position}: {whole[position]:#x} is {data[position]:#x}"
        problem = problem_of(place, expected, what)
        if problem is None:
            continue
        reported += 1
        assert str(place.path) in problem, what
        place.restore(data)
        assert place.store.list(check=True)[0].problem, what
        try:
            saved, _ = place.store.salvage(place.session_id)
        except SessionError:
            continue
        with saved:
            messages = [one for entry in saved.state.entries() for one in entry.messages]
        words = {one.text for one in messages if not one.tool_calls and not one.tool_results}
        # A rewind that is lost brings back what it took away; nothing else is there than was said.
        assert words - {INTERRUPTED} <= everything, what
    assert reported > 100


@pytest.mark.spec("SESSION-19", "SESSION-20")
def test_damaged_events_are_named_and_the_rest_is_saved(place: Place) -> None:
    connection = sqlite3.connect(place.path)
    connection.execute("UPDATE events SET data = 'I never said that' WHERE data = 'answer 3'")
    connection.execute("UPDATE events SET data = 'nor that' WHERE data = 'answer 4'")
    numbers = [
        number
        for (number,) in connection.execute(
            "SELECT seq FROM events WHERE data IN ('I never said that', 'nor that') ORDER BY seq"
        )
    ]
    (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
    connection.commit()
    connection.close()
    before = place.path.read_bytes()
    named = f"events {numbers[0]}, {numbers[1]} of {count} are damaged"
    store = place.store
    for act in (
        lambda: store.open(place.session_id),
        lambda: store.read(place.session_id),
        lambda: store.fork(place.session_id),
        lambda: store.fork(place.session_id, 1),
    ):
        with pytest.raises(SessionError, match=named) as caught:
            act()
        assert caught.value.hint == (
            f"`fast-agent session salvage {place.session_id}` starts a session with what is intact"
        )
    (listed,) = store.list(check=True)
    assert named in (listed.problem or "")
    saved, lost = store.salvage(place.session_id)
    with saved:
        assert (lost.damage.events, lost.turns) == (tuple(numbers), 2)
        turns = [turn.turn_id for turn in saved.state.turns]
        assert turns == ["a", "b", "p", *(f"t{n}" for n in range(12) if n not in (3, 4))]
        assert "yes, here" in list(texts(saved.history("bob")))
        assert "I never said that" not in list(texts(saved.history("ann")))
        assert saved.state.title == "the title"
        # It counts messages, of which some are gone.
        assert saved.journal.compaction("ann") is None
        write(saved, plain_turn("new", "goes", "on"))
    assert place.path.read_bytes() == before, "the damaged session stays as it is"
    with store.open(saved.id) as again:
        assert list(texts(again.history("ann")))[-2:] == ["goes", "on"]


@pytest.mark.spec("SESSION-20")
def test_a_child_that_begins_after_the_damage_is_lost_with_its_parent(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create(cwd=tmp_path) as session:
        write(
            session,
            [began("p", "ask bob"), MessageAdded("p", 1, calling("call-1"))],
            [began("c", "you there?", agent="bob", parent="call-1", depth=1)],
            [MessageAdded("c", 1, Message.assistant("yes")), TurnEnded("c", "endTurn", kept=True)],
            [ToolAnswered("p", result("call-1")), MessageAdded("p", 2, Message.assistant("done"))],
            [TurnEnded("p", "endTurn", kept=True)],
            plain_turn("q", "and now", "this"),
        )
    with sqlite3.connect(tmp_path / DIRECTORY / f"{session.id}.sqlite") as connection:
        connection.execute("UPDATE events SET data = 'other' WHERE seq = 2")
    connection.close()
    saved, lost = store.salvage(session.id)
    with saved:
        assert (lost.damage.events, lost.turns) == ((2,), 2)
        assert [turn.turn_id for turn in saved.state.turns] == ["q"]
        assert saved.history("bob") == []
        assert list(texts(saved.history("ann"))) == ["and now", "this"]


@pytest.mark.spec("SESSION-19")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("DELETE FROM events WHERE seq = 7", "event 7 of"),
        ("DELETE FROM events WHERE seq > 40", "events 41-"),
        ("UPDATE events SET seq = 5000 WHERE seq = 9", "event"),
        ("UPDATE events SET at = at + 3 WHERE seq = 9", "event 9 of"),
        ("UPDATE events SET turn = 'b' WHERE seq = 3", "event 3 of"),
        ("UPDATE events SET number = 1 WHERE kind = 'rewound'", "event"),
        ("DROP INDEX marks", None),
        ("UPDATE session SET value = '/elsewhere' WHERE key = 'cwd'", "its metadata is damaged"),
    ],
)
def test_what_is_missing_or_moved_is_reported(place: Place, change: str, named: str | None) -> None:
    with place.store.open(place.session_id) as session:
        expected = said(session)
    place.execute(change)
    (listed,) = place.store.list(check=True)
    if named is None:
        assert listed.problem is None
        with place.store.open(place.session_id) as session:
            assert said(session) == expected
    else:
        assert named in (listed.problem or "")
        if "SET at" not in change:
            with pytest.raises(SessionError, match=named):
                place.store.open(place.session_id)


@pytest.mark.spec("SESSION-19")
def test_a_damaged_checksum_costs_no_words(place: Place) -> None:
    place.execute(
        "UPDATE events SET sum = sum + 1 WHERE seq = 6",
        "UPDATE events SET data = 'x' WHERE seq = 30",
    )
    saved, lost = place.store.salvage(place.session_id)
    saved.close()
    assert lost.damage.events == (30,)


def test_events_have_checksums_since_version_two(place: Place) -> None:
    place.execute("UPDATE events SET data = 'x' WHERE seq = 3", "PRAGMA user_version = 2")
    (listed,) = place.store.list(check=True)
    assert "event 3" in str(listed.problem)


def test_the_result_of_a_turn_that_never_began_is_damage() -> None:
    row = (1, "result", "gone", None, None, None, None, "json", "{}")
    with pytest.raises(SessionError, match="event 1 is damaged: turn `gone` never began"):
        SessionState([row])


@pytest.mark.spec("SESSION-16", "SESSION-19")
def test_a_session_of_before_checksums_is_read_and_gets_them(place: Place) -> None:
    with place.store.open(place.session_id) as session:
        expected = said(session)
    place.execute(
        "ALTER TABLE events DROP COLUMN sum",
        "DELETE FROM session WHERE key IN ('seal', 'sum')",
        "PRAGMA user_version = 1",
    )
    old = place.path.read_bytes()
    # Reading leaves it as it is.
    (listed,) = place.store.list(check=True)
    assert (listed.problem, listed.title) == (None, "the title")
    _, state = place.store.read(place.session_id)
    assert state.entries() == expected["entries"]
    with place.store.fork(place.session_id) as fork:
        assert fork.state.entries() == expected["entries"]
    assert place.path.read_bytes() == old
    with place.store.open(place.session_id) as session:
        assert said(session) == expected
        write(session, plain_turn("new", "goes", "on"))
    connection = sqlite3.connect(place.path)
    assert version_of(connection) == len(STEPS)
    connection.execute("UPDATE events SET data = 'x' WHERE seq = 3")
    connection.commit()
    connection.close()
    with pytest.raises(SessionError, match="event 3 of"):
        place.store.open(place.session_id)


def test_checksums_are_the_same_on_every_machine_and_python() -> None:
    """One that changed would call every session damaged."""
    rows = [
        Row("turn", "t-1", "ann", None, 0, 1, "user", "Québec\n"),
        Row("message", "t-1", None, None, 1, None, None, '{"role": "user"}'),
        Row("rewound", number=2**40),
    ]
    at = 1_790_000_000.25
    _, number, total, _ = summed(rows, at, 0, 0)
    assert (number, total) == (3, 5003765264420773941)
    assert is_whole(3, rows[-1], at, total)
    assert not is_whole(3, rows[-1], at + 0.5, total)
    assert not is_whole(2, rows[-1], at, total)
    logged = cast("list[Logged]", [(number, *row) for number, row in enumerate(rows, 1)])
    assert is_chained(chained_sum(logged, 0), total)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.sessions.session_world import plain_turn, write
from fast_agent.sessions.store import SessionStore

session = SessionStore(Path(sys.argv[1])).create()
for number in range(30):
    write(session, plain_turn(f"t{number}", f"question {number}", f"answer {number}"))
print(session.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.spec("SESSION-19")
def test_a_damaged_end_of_a_session_that_was_killed_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "home"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert run.returncode == -signal.SIGKILL
    session_id = run.stdout.strip()
    log = f"{session_id}.sqlite-wal"
    size = (tmp_path / "home" / DIRECTORY / log).stat().st_size
    whole = {f"answer {number}" for number in range(30)}
    random = Random(SEED)
    for position in [0, 3, 8, 9, 17, 25, *random.sample(range(32, size), 60)]:
        home = tmp_path / f"home-{position}"
        copytree(tmp_path / "home", home)
        path = home / DIRECTORY / log
        data = bytearray(path.read_bytes())
        data[position] ^= random.randrange(1, 256)
        path.write_bytes(data)
        caplog.clear()
        what = f"seed {SEED}, byte {position}"
        try:
            with store_in(home).open(session_id) as session:
                answers = {text for text in texts(session.history("ann")) if text[:6] == "answer"}
        except SessionError:
            continue
        assert answers <= whole, what
        if answers != whole:
            assert "cannot be read: it continues from the events before them" in caplog.text, what
