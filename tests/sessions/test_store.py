"""The store: making, finding, listing, forking, renaming and deleting sessions."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.sessions.session_world import plain_turn, store_in, texts, tool_turn, write

from fast_agent.errors import SessionError, TrustError
from fast_agent.messages.message import Message
from fast_agent.sessions.event import HistoryCleared, HistoryExtended
from fast_agent.sessions.facts import SessionSets
from fast_agent.sessions.integrity import FACTS_SUM, SEAL
from fast_agent.sessions.sqlite.files import SessionFiles
from fast_agent.sessions.sqlite.schema import (
    APPLICATION_ID,
    STEPS,
    add_sums,
    upgrade_schema,
    version_of,
)
from fast_agent.sessions.store import SessionStore
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.found_set import FoundSet, Provenance

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.sessions.session import SetChange
    from fast_agent.sessions.sqlite.log import SqliteLog


def test_a_session_is_found_by_its_id_or_the_beginning_of_it(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create("first", cwd=tmp_path) as first, store.create() as second:
        assert store.find(first.id) == first.id
        assert store.find(second.id[:-1]) == second.id
        with pytest.raises(SessionError, match="may be several"):
            store.find(first.id[:10])
        with pytest.raises(SessionError) as caught:
            store.find(f"{first.id}x")
        assert caught.value.hint == f"did you mean `{first.id}`?"
    for wrong in ("", "../x", "a/b", ".hidden", "x" * 90):
        with pytest.raises(SessionError, match="there is no session"):
            store.find(wrong)


def test_an_alias_finds_a_session_until_nothing_happened_in_it_for_too_long(
    tmp_path: Path,
) -> None:
    clock = [1_000.0]
    store = SessionStore(tmp_path, now=lambda: clock[0])
    with store.create(alias="ab12") as session:
        write(session, plain_turn("t", "one", "two"))
    for path in tmp_path.rglob(f"{session.id}*"):
        os.utime(path, (1_000, 1_000))
    for now, found in ((1_000.0, session.id), (1_060.0, session.id), (1_060.5, None)):
        clock[0] = now
        assert store.aliased("ab12", idle_seconds=60) == found
    assert store.aliased("ab13", idle_seconds=1e9) is None


def test_a_session_that_cannot_get_its_alias_is_not_made(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    with store.create(alias="ab12"):
        pass
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SessionError, match="cannot get its alias: file exists"):
        store.create(alias="ab12")
    assert sorted(tmp_path.rglob("*")) == before
    assert len(store.list()) == 1


SECRET = "sk-secret-0123456789"


def test_what_is_written_holds_no_secret(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    store = SessionStore(kept, redact=lambda text: text.replace(SECRET, "•••"))
    with store.create() as session:
        write(session, plain_turn("ann-1", f"key {SECRET}", "one"), tool_turn("ann-2"))
        write(session, [HistoryExtended("ann", (Message.user(f"it is {SECRET}"),))])
        written = [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
    written += [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
    assert any(b"it is" in one for one in written)
    assert not any(SECRET.encode() in one for one in written)
    with store.open(session.id) as again:
        history = again.state.history("ann") or []
    assert (history[0].text, history[-1].text) == ("key •••", "it is •••")


def test_without_a_redactor_everything_is_written_as_it_is(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    with store.create() as session:
        write(session, plain_turn("ann-1", f"key {SECRET}", "one"))
    with store.open(session.id) as again:
        assert (again.state.history("ann") or [])[0].text == f"key {SECRET}"


@pytest.mark.spec("SESSION-7")
def test_the_list_tells_titles_turns_and_places_the_newest_first(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create(cwd=tmp_path) as old:
        write(old, plain_turn("a", f"what   is\n{'long ' * 30}", "this"))
    with store.create("named") as new:
        write(new, plain_turn("a", "one", "1"), plain_turn("b", "two", "2"))
        new.rewind(1)
    listed = store.list()
    assert [one.id for one in listed] == [new.id, old.id]
    assert [one.turns for one in listed] == [1, 1]
    assert listed[0].title == "named"
    assert listed[1].title == "what is long long long long long long long long long long lo…"
    assert (listed[0].cwd, listed[1].cwd) == ("", str(tmp_path))
    assert listed[1].created < listed[1].changed < listed[0].changed
    assert store.latest() == new.id
    assert store.latest(tmp_path) == old.id
    assert store.latest(tmp_path / "elsewhere") is None


def run_of(root: Path, *effects: str, digest: str = "sha256:1") -> Provenance:
    """The found sets of a run, with agents that may run some programs."""
    holder = Holder("card", "ann")
    runs = [Effect("run", one, holder, "ann.md") for one in effects]
    found = Provenance.of(root, [FoundSet(root)], runs)
    return replace(found, digest=digest)


@pytest.mark.spec("TR-G8.1")
def test_a_session_keeps_root_and_digest_of_its_set(tmp_path: Path) -> None:
    now = run_of(tmp_path, "ls")
    store = store_in(tmp_path, provenance=lambda: now)
    with store.create() as begun:
        write(begun, plain_turn("a", "one", "1"))
    with store.open(begun.id) as again:
        assert again.facts.brought == SessionSets.now(now)
    first, now = now, run_of(tmp_path, "ls", "rm", digest="sha256:2")
    seen: list[SetChange] = []
    with pytest.raises(TrustError, match="its agents may do more than when it was kept"):
        store.open(begun.id)
    with pytest.raises(TrustError, match=r"\+ run      rm"):
        store.open(begun.id, agree=lambda change: bool(seen.append(change)))
    assert [effect.subject for effect in seen[0].added] == ["rm"]
    with store_in(tmp_path).open(begun.id) as plain:
        assert plain.facts.brought == SessionSets.now(first), "what runs no agents changes nothing"
    with store.open(begun.id, agree=lambda _: True) as agreed:
        assert agreed.facts.brought == SessionSets.now(now)
    now = run_of(tmp_path, "ls", digest="sha256:3")
    with store.open(begun.id) as fewer:
        write(fewer, plain_turn("b", "two", "2"))
    now = run_of(tmp_path, "ls", "rm", digest="sha256:2")
    with store.open(begun.id) as known:
        assert known.facts.brought == SessionSets.now(now)
    store_in(tmp_path).list(check=True)


@pytest.mark.spec("TR-G8.1", "TR-G8.2")
def test_copies_of_a_session_belong_where_it_belongs(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    now = run_of(there, "ls")
    store = store_in(tmp_path, provenance=lambda: now)
    with store.create(cwd=here) as begun:
        write(begun, plain_turn("a", "one", "1"))
    now = run_of(here)
    with store.fork(begun.id) as forked:
        assert forked.facts.brought == begun.facts.brought
    with store.salvage(begun.id)[0] as salvaged:
        assert salvaged.facts.brought == begun.facts.brought
    for one in (begun, forked, salvaged):
        with pytest.raises(TrustError, match=f"belongs to `{there}`, and this is `{here}`"):
            store.open(one.id)
    assert store.latest(here) is None
    now = run_of(there)
    assert store.latest(here) == salvaged.id
    store.open(begun.id).close()


@pytest.mark.spec("TR-G8.1", "TR-G8.2")
def test_a_session_from_before_its_set_was_kept_is_resumed_as_before(tmp_path: Path) -> None:
    with store_in(tmp_path).create(cwd=tmp_path) as old:
        write(old, plain_turn("a", "one", "1"))
    assert old.facts.brought is None
    now = run_of(tmp_path / "elsewhere", "ls")
    store = store_in(tmp_path, provenance=lambda: now)
    assert store.latest(tmp_path) == old.id
    with store.open(old.id) as resumed:
        assert resumed.facts.brought == SessionSets.now(now), "from now on it is kept"
    now = run_of(tmp_path / "elsewhere", "ls", "rm")
    with pytest.raises(TrustError, match="may do more"):
        store.open(old.id)


@pytest.mark.spec("TR-G8.1")
def test_where_no_project_takes_part_a_session_is_resumed_anywhere(tmp_path: Path) -> None:
    now = Provenance(tmp_path / "there")
    store = store_in(tmp_path, provenance=lambda: now)
    store.create().close()
    (kept,) = [one.id for one in store.list()]
    now = Provenance(tmp_path / "here")
    store.open(kept).close()
    now = run_of(tmp_path / "here")
    with pytest.raises(TrustError, match="belongs to"):
        store.open(kept)


def test_files_of_others_are_no_sessions(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, plain_turn("a", "one", "1"))
    for name in ("notes", "notes.sqlite-journal", "no id.sqlite", ".sqlite", "notes.sqlite.bak"):
        (tmp_path / "sessions" / name).write_text("mine")
    assert [one.id for one in store.list()] == [session.id]


def test_a_home_without_sessions_lists_none_and_is_left_alone(tmp_path: Path) -> None:
    store = store_in(tmp_path / "home")
    assert store.list() == []
    assert store.latest() is None
    assert not (tmp_path / "home").exists()


def opened_by(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """List the sessions; returns their titles, and the ids of those whose files were opened."""
    opened: list[str] = []
    read = SessionFiles.read

    def counted(files: SessionFiles, session_id: str) -> SqliteLog:
        opened.append(session_id)
        return read(files, session_id)

    with monkeypatch.context() as patch:
        patch.setattr(SessionFiles, "read", counted)
        titles = [one.title for one in store.list()]
    return titles, opened


@pytest.mark.spec("T-H1.3")
def test_a_list_opens_only_sessions_that_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SessionStore(tmp_path)
    with_titles = [store.create(f"title {number}") for number in range(20)]
    for session in with_titles:
        session.close()
    ids = [session.id for session in with_titles]
    files = [path for path in (tmp_path / "sessions").iterdir() if ".sqlite" in path.name]
    for path in files:  # what changed just now is opened again
        os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    titles, opened = opened_by(store, monkeypatch)
    assert sorted(opened) == sorted(ids)
    assert opened_by(store, monkeypatch) == (titles, [])
    store.rename(ids[3], "another title")
    changed, opened = opened_by(store, monkeypatch)
    assert opened == [ids[3]]
    assert "another title" in changed
    assert "title 3" not in changed
    store.delete(ids[5])
    assert "title 5" not in [one.title for one in store.list()]
    kept = tmp_path / "sessions/summaries.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert '"title 4"' in kept.read_text()
    assert '"title 5"' not in kept.read_text()
    for text in ("[]", '{"a": 1}', '{"a": [[1], {"id": 1, "more": 2}]}', "\0", ""):
        kept.write_text(text)
        assert sorted(one.title for one in store.list()) == sorted(
            {*changed, "another title"} - {"title 5"}
        )
    listed = store.list(check=True)
    assert len(listed) == 19


@pytest.mark.spec("SESSION-1")
def test_only_the_owner_may_read_sessions(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create(alias="ab12") as session:
        write(session, plain_turn("a", "secret", "kept"))
        made = [tmp_path / "sessions", *(tmp_path / "sessions").iterdir()]
        assert len(made) == 6
        assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in made)


def test_a_session_is_written_by_one_at_a_time_and_read_by_many(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, plain_turn("a", "one", "1"))
        with pytest.raises(SessionError, match=r"is in use by process \d+") as caught:
            store.open(session.id)
        assert "session fork" in (caught.value.hint or "")
        with pytest.raises(SessionError, match="is in use by process"):
            store.delete(session.id)
        with pytest.raises(SessionError, match="is in use by process"):
            store.rename(session.id, "x")
        summary, state = store.read(session.id)
        assert summary.turns == len(state.turns) == 1
    with store.open(session.id) as again:
        assert list(texts(again.history("ann"))) == ["one", "1"]


@pytest.mark.spec("SESSION-10")
def test_another_process_that_holds_a_session_is_named_and_its_end_frees_it(
    tmp_path: Path,
) -> None:
    with store_in(tmp_path).create() as session:
        pass
    code = (
        "import sys, pathlib\nfrom fast_agent.sessions.store import SessionStore\n"
        "SessionStore(pathlib.Path(sys.argv[1])).open(sys.argv[2])\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), session.id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SessionError, match=f"is in use by process {holder.pid}"):
            store_in(tmp_path).open(session.id)
        holder.kill()
    with store_in(tmp_path).open(session.id) as again:
        assert again.id == session.id


@pytest.mark.spec("SESSION-5")
def test_a_fork_goes_on_from_any_turn_and_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create("root", cwd=tmp_path) as source:
        write(source, plain_turn("a", "one", "1"), tool_turn("b"), plain_turn("c", "three", "3"))
        expected = [0, 2, 6, 8]
        for at in range(4):
            with store.fork(source.id, at) as fork:
                assert len(fork.history("ann")) == expected[at]
                assert fork.facts.parent == source.id
                assert fork.facts.cwd == str(tmp_path)
                write(fork, plain_turn("new", "other", "way"))
                assert list(texts(fork.history("ann")))[-2:] == ["other", "way"]
        with store.fork(source.id, "b", title="twig") as twig:
            assert list(texts(twig.history("ann"))) == [
                *("one", "1", "look twice", "1 2", "<one>", "<two>", "done")
            ]
        with store.fork(source.id) as whole:
            assert whole.history("ann") == source.history("ann")
            assert whole.journal.transcript.entries == tuple(source.state.entries())
        assert [one.title for one in store.list()].count("twig") == 1
        assert len(source.history("ann")) == 8
        for wrong in (4, "nobody", -1):
            with pytest.raises(SessionError, match="there is no turn"):
                store.fork(source.id, wrong)


def test_a_fork_leaves_out_what_was_rewound(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as source:
        write(source, plain_turn("a", "one", "1"), plain_turn("b", "two", "2"))
        source.rewind(1)
        write(source, plain_turn("c", "three", "3"))
        with store.fork(source.id, 2) as fork:
            assert list(texts(fork.history("ann"))) == ["one", "1", "three", "3"]
        with store.fork(source.id, 1) as fork:
            assert list(texts(fork.history("ann"))) == ["one", "1"]


def test_rename_and_delete(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create("old") as session:
        pass
    store.rename(session.id, "new \ud800")
    assert store.list()[0].title == "new ?"
    store.delete(session.id)
    assert list((tmp_path / "sessions").iterdir()) == []
    with pytest.raises(SessionError, match="there is no session"):
        store.delete(session.id)


@pytest.mark.spec("SESSION-11")
def test_a_damaged_file_is_reported_harms_no_other_and_can_be_deleted(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create("good") as good:
        write(good, plain_turn("a", "one", "1"))
    with store.create("bad") as bad:
        write(bad, *(plain_turn(f"t{n}", "x" * 3000, "y") for n in range(40)))
    path = tmp_path / "sessions" / f"{bad.id}.sqlite"
    data = bytearray(path.read_bytes())
    data[40_000:60_000] = b"\xa5" * 20_000
    path.write_bytes(data)
    with pytest.raises(SessionError, match=r"is damaged|event") as caught:
        store.open(bad.id)
    assert str(path) in str(caught.value)
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    with pytest.raises(SessionError, match="the file is damaged"):
        store.open(bad.id)
    listed = {one.id: one for one in store.list()}
    assert "the file is damaged" in (listed[bad.id].problem or "")
    assert listed[good.id].problem is None
    assert store.latest() == good.id
    store.delete(bad.id)
    assert [one.id for one in store.list()] == [good.id]


def test_an_event_that_does_not_fit_is_named_by_its_number(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, plain_turn("a", "one", "1"))
    path = tmp_path / "sessions" / f"{session.id}.sqlite"
    for change, reported in {
        "UPDATE events SET kind = 'strange' WHERE seq = 2": "event 2 is damaged: `strange`",
        "UPDATE events SET kind = 'message', form = 'nobody' WHERE seq = 2": "role `nobody`",
        "UPDATE events SET form = NULL, data = '{' WHERE seq = 2": "not JSON",
        "UPDATE events SET form = NULL, data = '{}' WHERE seq = 2": "no message",
        "UPDATE events SET number = 7 WHERE seq = 2": "has no message 6",
        "UPDATE events SET number = 9 WHERE seq = 3": "event 3 is damaged",
        "UPDATE events SET form = '1 2' WHERE seq = 3": "`1 2` is not the usage of a turn",
        "UPDATE events SET form = '1 2 3 4 5 x' WHERE seq = 3": "not the usage of a turn",
        f"UPDATE events SET form = '{'y' * 99}' WHERE seq = 3": f" `{'y' * 50}` is not the usage",
        "UPDATE events SET turn = 'z' WHERE seq = 3": "turn `z` never began",
    }.items():
        connection = sqlite3.connect(path)
        connection.execute(change)
        # As written by a program that is wrong: the checksums fit.
        connection.execute("DELETE FROM session WHERE key = ?", (FACTS_SUM,))
        add_sums(connection)
        connection.commit()
        connection.close()
        with pytest.raises(SessionError, match=reported), store.open(session.id) as broken:
            broken.history("ann")
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM events")
        connection.execute("DELETE FROM session WHERE key = ?", (SEAL,))
        connection.commit()
        connection.close()
        with store.open(session.id) as fixed:
            write(fixed, plain_turn("a", "one", "1"))


@pytest.mark.spec("SESSION-11")
def test_a_file_of_another_version_or_program_is_reported(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        pass
    path = tmp_path / "sessions" / f"{session.id}.sqlite"
    for pragma, reported in {
        f"user_version = {len(STEPS) + 1}": f"is of version {len(STEPS) + 1}",
        "application_id = 7": "is not a session",
    }.items():
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA {pragma}")
        connection.close()
        with pytest.raises(SessionError, match=reported) as caught:
            store.open(session.id)
        assert caught.value.hint
        assert reported in (store.list()[0].problem or "")


@pytest.mark.spec("SESSION-16")
def test_an_older_file_is_brought_up_whole_or_not_at_all(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    upgrade_schema(connection)
    assert version_of(connection) == len(STEPS)
    connection.execute("INSERT INTO events (at, kind, data) VALUES (1, 'titled', 'kept')")
    step = ("ALTER TABLE events ADD COLUMN colour TEXT", "UPDATE events SET colour = 'red'")
    with pytest.raises(sqlite3.Error):
        upgrade_schema(connection, (*STEPS, (*step, "UPDATE nothing SET x = 1")))
    assert version_of(connection) == len(STEPS)
    upgrade_schema(connection, (*STEPS, step))
    assert version_of(connection) == len(STEPS) + 1
    assert connection.execute("SELECT data, colour FROM events").fetchall() == [("kept", "red")]
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    connection.close()


@pytest.mark.spec("SESSION-6")
def test_nested_rewinds_leave_what_each_kept(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        for number in range(1, 6):
            write(session, plain_turn(f"t{number}", f"q{number}", f"a{number}"))
        session.rewind(4)
        session.rewind(2)
        write(session, plain_turn("x", "new", "one"))
        session.rewind("x")
        session.rewind(1)
        write(session, plain_turn("y", "last", "one"))
        assert list(texts(session.history("ann"))) == ["q1", "a1", "last", "one"]
        assert [turn.turn_id for turn in session.state.turns] == ["t1", "y"]
        session.rewind(0)
        assert session.history("ann") == []
        assert session.journal.history("ann") is None
        # Nothing is deleted.
        assert session.state.last == 5 * 3 + 3 + 3 + 5
    with store.open(session.id) as again:
        assert again.history("ann") == []


@pytest.mark.parametrize("count", [1, 2, 8, 9, 40])
def test_events_of_one_write_are_kept_however_many_they_are(tmp_path: Path, count: int) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        session.journal.record(*(HistoryCleared(f"agent-{one}", True) for one in range(count)))
        session_id = session.id
    with store.open(session_id) as session:
        assert sorted(session.state.agents) == sorted(f"agent-{one}" for one in range(count))


def test_a_home_that_cannot_be_written_to_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SessionError, match="cannot keep sessions in") as caught:
        store_in(tmp_path / "file/home").create()
    assert "FAST_AGENT_HOME" in str(caught.value.hint)
