"""Sessions in a real PostgreSQL: the same as in files, leased, fenced, and safe from its faults."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from tests.cut_network import Proxy
from tests.patience import PATIENCE, wait_until
from tests.postgres_server import PASSWORD, PostgresServer, why_not
from tests.sessions.live_world import live, world_of
from tests.sessions.session_world import plain_turn, texts, tool_turn, write

from fast_agent.errors import ConfigError, RunError, SessionError
from fast_agent.messages.history import check_validity
from fast_agent.sessions.postgres.database import LOCK, STEPS, Line
from fast_agent.sessions.postgres.logs import PostgresLogs
from fast_agent.sessions.store import SessionStore
from fast_agent.trust.found_set import Provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fast_agent.sessions.session import Session

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"not run: {why_not()}")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture
def store(server: PostgresServer) -> SessionStore:
    return SessionStore(server.url, lease_seconds=3.0)


@pytest.mark.spec("SESSION-21")
def test_a_session_is_resumed_rewound_forked_and_saved_as_from_a_file(store: SessionStore) -> None:
    with store.create() as session:
        write(session, plain_turn("t1", "hi\0 there", "ho"), tool_turn("t2"))
        before = session.history("ann")
        kept = session.id
    with store.open(kept) as session:
        assert session.history("ann") == before
        session.rewind(1)
        assert list(texts(session.history("ann"))) == ["hi\0 there", "ho"]
    (listed,) = [one for one in store.list() if one.id == kept]
    assert (listed.title, listed.turns) == ("hi\ufffd there", 1)
    summary, _ = store.read(kept)
    assert summary.changed == pytest.approx(listed.changed)
    assert summary.changed > summary.created
    with store.fork(kept, title="copy") as copy:
        assert list(texts(copy.history("ann"))) == ["hi\0 there", "ho"]
    saved, lost = store.salvage(kept)
    with saved:
        assert (lost.damage.events, lost.turns) == ((), 0)
        assert list(texts(saved.history("ann"))) == ["hi\0 there", "ho"]
    store.rename(kept, "new")
    assert {one.title for one in store.list()} >= {"new", "copy"}
    store.delete(kept)
    with pytest.raises(SessionError, match="there is no session"):
        store.open(kept)


def test_what_a_session_may_do_is_remembered_by_who_holds_it(
    store: SessionStore, server: PostgresServer, tmp_path: Path
) -> None:
    with store.create() as session:
        write(session, plain_turn("t1", "one", "two"))
        session.belong(Provenance(tmp_path, "digest"))
        kept = session.id
        session.release()
        with SessionStore(server.url).open(kept) as other:
            assert other.facts.brought is not None
            assert other.facts.brought.root == str(tmp_path)
            with pytest.raises(SessionError):
                session.belong(Provenance(tmp_path / "elsewhere", "another"))
    with store.open(kept) as session:
        assert session.facts.brought is not None
        assert session.facts.brought.digest == "digest"


@pytest.mark.spec("SESSION-22")
def test_an_alias_finds_a_session_that_something_happened_in_lately(store: SessionStore) -> None:
    with store.create(alias="ab12") as session:
        pass
    assert store.aliased("ab12", idle_seconds=60) == session.id
    assert store.aliased("ab12", idle_seconds=0) is None
    assert store.aliased("ab13", idle_seconds=60) is None


@pytest.mark.anyio
async def test_nothing_is_awaited_of_a_session_without_events(store: SessionStore) -> None:
    with store.create() as session:
        async with asyncio.timeout(PATIENCE):
            await session.journal.barrier()


def test_a_session_is_written_by_one_process_at_a_time(
    store: SessionStore, server: PostgresServer
) -> None:
    other = SessionStore(server.url)
    with store.create() as session:
        write(session, plain_turn("t1", "one", "two"))
        with pytest.raises(SessionError, match="is in use by process"):
            other.open(session.id)
        session.release()
        with other.open(session.id) as taken:
            write(taken, plain_turn("t2", "three", "four"))
        assert not session.acquire(), "another process wrote it"
        session.release()
        assert session.acquire()


@pytest.mark.spec("SESSION-22", "SESSION-23")
def test_a_writer_whose_session_was_taken_over_writes_nothing(server: PostgresServer) -> None:
    """A suspended process: its lease runs out, another one goes on, and it wakes up."""
    slow = SessionStore(server.url, lease_seconds=600.0)
    with slow.create() as session:
        write(session, plain_turn("t1", "one", "two"))
        asyncio.run(session.journal.barrier())
        _sql(server, "UPDATE fast_agent_session SET lease = now() - interval '1 second'")
        with SessionStore(server.url).open(session.id) as taken:
            write(taken, plain_turn("t2", "three", "four"))
            write(session, plain_turn("zombie", "five", "six"))
            with pytest.raises(SessionError, match="another process took it over"):
                asyncio.run(session.journal.barrier())
            with pytest.raises(SessionError, match="another process took it over"):
                write(session, plain_turn("zombie2", "five", "six"))
            assert [turn.turn_id for turn in taken.state.turns] == ["t1", "t2"]


_KILLED = """
import sys, time
from tests.sessions.session_world import plain_turn, write
from fast_agent.sessions.store import SessionStore
from fast_agent.trust.found_set import Provenance
import asyncio
session = SessionStore(sys.argv[1]).create()
write(session, plain_turn("t1", "one", "two"))
asyncio.run(session.journal.barrier())
print(session.id, flush=True)
time.sleep(600)
"""


@pytest.mark.spec("SESSION-23")
def test_the_session_of_a_killed_process_of_this_machine_is_free_at_once(
    server: PostgresServer,
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, server.url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        with process.stdout as output:
            session_id = output.readline().strip()
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    with SessionStore(server.url).open(session_id) as session:
        assert list(texts(session.history("ann"))) == ["one", "two"]


@pytest.mark.spec("SESSION-24")
def test_a_server_that_is_killed_and_comes_back_loses_and_repeats_nothing() -> None:
    with PostgresServer() as server:
        store = SessionStore(server.url, lease_seconds=60.0)
        with store.create() as session:
            for number in range(5):
                write(session, plain_turn(f"a{number}", "one", "two"))
            asyncio.run(session.journal.barrier())
            server.kill()
            for number in range(5):
                write(session, plain_turn(f"b{number}", "one", "two"))
            with ThreadPoolExecutor() as threads:
                written = threads.submit(asyncio.run, session.journal.barrier())
                time.sleep(0.5)
                server.start()
                written.result()
            assert len(session.state.turns) == 10
        with store.open(session.id) as again:
            assert len(again.state.turns) == 10


@pytest.fixture
def refused(server: PostgresServer) -> Iterator[Callable[[int | None], None]]:
    """Have the database refuse events from a number on, as one whose disk is full."""
    with psycopg.connect(server.url, autocommit=True) as connection:

        def refuse(number: int | None) -> None:
            connection.execute("DROP TRIGGER IF EXISTS full_disk ON fast_agent_event")
            if number is not None:
                connection.execute(_FULL)
                connection.execute(sql.SQL(_TRIGGER).format(sql.Literal(number)))

        SessionStore(server.url).create().close()  # makes the tables
        refuse(None)
        yield refuse
        refuse(None)


_TRIGGER = """
CREATE TRIGGER full_disk BEFORE INSERT ON fast_agent_event FOR EACH ROW
WHEN (NEW.seq >= {}) EXECUTE FUNCTION full_disk()"""
_FULL = """
CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$"""


@pytest.mark.anyio
@pytest.mark.spec("SESSION-34")
@pytest.mark.parametrize("number", range(4, 12))
async def test_whichever_event_finds_the_disk_full_log_and_memory_agree_once_there_is_room(
    store: SessionStore, refused: Callable[[int | None], None], number: int
) -> None:
    with store.create() as session:
        async with live(world_of(), session.journal) as runtime:
            lead = runtime.agent("lead")
            await lead.send("hello")
            refused(number)
            for _ in range(2):
                with pytest.raises((SessionError, RunError), match="disk is full"):
                    await lead.send("go")
            assert check_validity(lead.history) == []
            refused(None)
            await lead.send("again")
            assert session.history("lead") == list(lead.history)
            history = list(lead.history)
            assert [*texts(history)][:2] == ["hello", "echo hello"]
    with store.open(session.id) as again:
        assert again.history("lead") == history


def test_a_title_and_a_fork_without_room_are_errors_and_change_nothing(
    store: SessionStore, refused: Callable[[int | None], None]
) -> None:
    with store.create() as session:
        write(session, plain_turn("t0", "one", "two"))
        kept = session.id
    store.rename(kept, "old")
    before = store.list()
    refused(1)
    with pytest.raises(SessionError, match="its disk is full"):
        store.rename(kept, "new")
    with pytest.raises(SessionError, match="its disk is full"):
        store.fork(kept)
    refused(None)
    assert [(one.id, one.title) for one in store.list()] == [(one.id, one.title) for one in before]


@pytest.mark.spec("SESSION-34")
def test_a_session_continues_once_a_database_that_stayed_away_is_back() -> None:
    with PostgresServer() as server:
        store = SessionStore(server.url, lease_seconds=0.6)
        with store.create() as session:
            write(session, plain_turn("t0", "one", "two"))
            asyncio.run(session.journal.barrier())
            server.kill()
            write(session, plain_turn("t1", "lost", "lost"))
            with pytest.raises(SessionError, match="cannot be reached"):
                asyncio.run(session.journal.barrier())
            with pytest.raises(SessionError, match="cannot be reached"):
                write(session, plain_turn("t2", "lost", "lost"))
            server.start()
            wait_until(lambda: is_written(session))
            asyncio.run(session.journal.barrier())
        with store.open(session.id) as again:
            assert list(texts(again.history("ann"))) == ["one", "two", "three", "four"]


def is_written(session: Session) -> bool:
    try:
        write(session, plain_turn("t3", "three", "four"))
    except SessionError:
        return False
    return True


async def fill(session: Session) -> None:
    for turn in range(1, 200):
        write(session, plain_turn(f"t{turn}", "x" * 20_000, "y"))
        await session.journal.barrier()


@pytest.mark.spec("SESSION-34")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_session_continues_once_the_disk_of_the_database_has_room() -> None:
    disk = Path(tempfile.mkdtemp(prefix="fast-agent-pg-"))  # the user of the cluster reaches it
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("this machine mounts no file system")
    try:
        with PostgresServer(directory=disk) as server:
            store = SessionStore(server.url)
            with store.create() as session:
                write(session, plain_turn("t0", "one", "two"))
                asyncio.run(session.journal.barrier())
                (disk / "filler").write_bytes(b"x" * (shutil.disk_usage(disk).free - 200_000))
                with pytest.raises(SessionError, match="its disk is full") as caught:
                    asyncio.run(fill(session))
                assert caught.value.hint == "free some space there and send the message again"
                (disk / "filler").unlink()
                write(session, plain_turn("later", "three", "four"))
                asyncio.run(session.journal.barrier())
                history = session.history("ann")
            with store.open(session.id) as again:
                assert again.history("ann") == history
                said = list(texts(again.history("ann")))
                assert said[:2] == ["one", "two"]
                assert said[-2:] == ["three", "four"]
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        disk.rmdir()


@pytest.mark.spec("SESSION-29")
@pytest.mark.parametrize("ways", [("to",), ("from",), ("to", "from")])
def test_a_database_that_acknowledges_and_never_answers_is_taken_for_lost(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, ...]
) -> None:
    """The proxy takes every byte, so that TCP sees no fault."""
    monkeypatch.setattr(Line, "patience", 0.5)
    with Proxy(server.port) as proxy:
        store = SessionStore(server.url_at(proxy.port), lease_seconds=2.0)
        with store.create() as session:
            write(session, plain_turn("t1", "one", "two"))
            asyncio.run(session.journal.barrier())
            proxy.cut(*ways)
            write(session, plain_turn("t2", "three", "four"))
            with pytest.raises(SessionError, match=r"cannot be written: .* cannot be reached"):
                asyncio.run(session.journal.barrier())
            with pytest.raises(SessionError, match="cannot be reached") as caught:
                store.list()
            assert caught.value.hint == "check that it runs, and `sessions.url`"
            proxy.heal()
        with store.open(session.id) as again:
            # The second turn may have arrived: its answer alone was held.
            kept = list(texts(again.history("ann")))
            assert kept in (["one", "two"], ["one", "two", "three", "four"])


def test_an_answer_that_takes_a_while_is_awaited(server: PostgresServer) -> None:
    with Line.connect(server.url, autocommit=True) as line:
        (found,) = line.execute("SELECT pg_sleep(0.5), 'late'").fetchall()
        assert found[1] == "late"


@pytest.mark.spec("SESSION-29")
@pytest.mark.parametrize("ways", [("to",), ("from",)])
def test_a_silence_shorter_than_a_lease_loses_and_repeats_nothing(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, ...]
) -> None:
    monkeypatch.setattr(Line, "patience", 0.3)
    with Proxy(server.port) as proxy:
        store = SessionStore(server.url_at(proxy.port), lease_seconds=60.0)
        with store.create() as session:
            write(session, plain_turn("t1", "one", "two"))
            asyncio.run(session.journal.barrier())
            proxy.cut(*ways)
            for number in range(5):
                write(session, plain_turn(f"b{number}", "one", "two"))
            healed = Thread(target=lambda: (time.sleep(1.0), proxy.heal()))
            healed.start()
            asyncio.run(session.journal.barrier())
            healed.join()
        with store.open(session.id) as again:
            assert [turn.turn_id for turn in again.state.turns] == ["t1"] + [
                f"b{number}" for number in range(5)
            ]


@pytest.mark.spec("SESSION-30")
@pytest.mark.parametrize("ways", [("to",), ("from",), ("to", "from")])
def test_a_cut_while_a_lease_is_renewed_loses_nothing(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, ...]
) -> None:
    """Nothing is written meanwhile, so that the cut meets renewals alone."""
    monkeypatch.setattr(Line, "patience", 0.3)
    with Proxy(server.port) as proxy:
        store = SessionStore(server.url_at(proxy.port), lease_seconds=30.0)
        with store.create() as session:
            write(session, plain_turn("t1", "one", "two"))
            asyncio.run(session.journal.barrier())
            renewing = _renewed_now(store)
            proxy.cut(*ways)
            renewing()
            proxy.heal()
            write(session, plain_turn("t2", "three", "four"))
            asyncio.run(session.journal.barrier())
            renewing()
            assert _seconds_left(server, session.id) > 25
        with store.open(session.id) as again:
            assert [turn.turn_id for turn in again.state.turns] == ["t1", "t2"]


@pytest.mark.spec("SESSION-30")
def test_a_lease_that_ran_out_behind_a_cut_is_not_renewed_over_another(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Line, "patience", 0.3)
    with Proxy(server.port) as proxy:
        store = SessionStore(server.url_at(proxy.port), lease_seconds=30.0)
        with store.create() as session:
            write(session, plain_turn("t1", "one", "two"))
            asyncio.run(session.journal.barrier())
            renewing = _renewed_now(store)
            proxy.cut("to", "from")
            renewing()
            _sql(server, "UPDATE fast_agent_session SET lease = now() - interval '1 second'")
            with SessionStore(server.url).open(session.id) as taken:
                proxy.heal()
                renewing()
                write(taken, plain_turn("t2", "three", "four"))
                asyncio.run(taken.journal.barrier())
                with pytest.raises(SessionError, match="another process took it over"):
                    write(session, plain_turn("zombie", "five", "six"))
                assert [turn.turn_id for turn in taken.state.turns] == ["t1", "t2"]


@pytest.mark.spec("SESSION-25")
@pytest.mark.spec("SESSION-35")
def test_two_processes_may_create_the_tables_at_once(server: PostgresServer) -> None:
    tables = ("session", "event", "step", "limit", "meta")
    _sql(server, f"DROP TABLE {', '.join(f'fast_agent_{name}' for name in tables)}")
    stores = [SessionStore(server.url) for _ in range(4)]
    threads = [Thread(target=one.list) for one in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in stores:
        assert one.list() == []
    _sql(server, "UPDATE fast_agent_meta SET version = 99")
    try:
        with pytest.raises(SessionError, match="of version 99"):
            SessionStore(server.url).list()
    finally:
        _sql(server, f"UPDATE fast_agent_meta SET version = {len(STEPS)}")


def test_tables_that_are_current_are_used_while_another_process_upgrades(
    server: PostgresServer, store: SessionStore
) -> None:
    store.list()
    with psycopg.connect(server.url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        reader = Thread(target=SessionStore(server.url).list, daemon=True)
        reader.start()
        reader.join(PATIENCE)
        assert not reader.is_alive()


@pytest.mark.spec("SESSION-26")
def test_no_message_holds_the_password(server: PostgresServer) -> None:
    wrong = server.url.replace(PASSWORD, "wrong-" + PASSWORD)
    down = server.url_at(1)
    for url in (wrong, down, f"{server.url}-none"):
        with pytest.raises(SessionError) as caught:
            SessionStore(url).list()
        assert PASSWORD not in f"{caught.value}{caught.value.hint}"
        assert "agents@127.0.0.1" in caught.value.message
    with pytest.raises(ConfigError, match="may not set `host`"):
        SessionStore(f"{server.url}?host=elsewhere.example")
    with pytest.raises(ConfigError, match="not the address of a PostgreSQL database"):
        SessionStore(f"mysql://u:{PASSWORD}@h/d")


def _renewed_now(store: SessionStore) -> Callable[[], None]:
    """Return what renews the leases of a store at once, as its thread does after a third of one."""
    logs = store._logs
    assert isinstance(logs, PostgresLogs)
    return logs._lease.writer._renew


def _seconds_left(server: PostgresServer, session_id: str) -> float:
    import psycopg

    statement = b"SELECT extract(epoch FROM lease - now()) FROM fast_agent_session WHERE id = %s"
    with psycopg.connect(server.url, autocommit=True) as connection:
        row = connection.execute(statement, (session_id,)).fetchone()
    assert row is not None
    return float(row[0])


def _sql(server: PostgresServer, statement: str) -> None:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement.encode())
