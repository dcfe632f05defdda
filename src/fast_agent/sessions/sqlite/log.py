"""SQLite log: the file of one session.

What is written at once is one transaction in the write-ahead log, so that it is there whole or not
at all when the process is killed; SQLite does not wait for the disk for that. `append_durably`
brings it to the disk itself, where a loss of power does not reach it, and tidies the write-ahead
log up, which nothing else does: that must wait for the disk to be safe. It is meant for a worker
thread; `is_due` and `is_long` say when it is time.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from fast_agent.config.settings import DISK_SECONDS
from fast_agent.errors import SessionError, os_reason
from fast_agent.sessions.event import REWOUND, ROW_COLUMNS, TITLED, TURN, Row, hide
from fast_agent.sessions.integrity import (
    FACTS_SUM,
    SEAL,
    Damage,
    Inspection,
    chained_sum,
    facts_sum,
    is_chained,
    is_whole,
    last_number,
    lost_writes,
    summed,
)
from fast_agent.sessions.message_text import read
from fast_agent.sessions.sqlite.schema import (
    FIRST_WITH_SUMS,
    check_schema,
    upgrade_schema,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.messages.message import Message
    from fast_agent.sessions.event import Logged
    from fast_agent.text.safe_file import FileLock

_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = f"INSERT INTO events (seq, at, {ROW_COLUMNS}, sum) VALUES {_VALUES}"  # noqa: S608
_INSERTS = tuple([_INSERT + f", {_VALUES}" * more for more in range(8)])
_ROWS = f"SELECT seq, {ROW_COLUMNS} FROM events WHERE seq <= ? ORDER BY seq"  # noqa: S608
_REWINDS = "SELECT number, seq FROM events WHERE kind = 'rewound' AND seq <= ? ORDER BY seq"
_TITLE = "SELECT seq FROM events WHERE kind = 'titled' ORDER BY seq DESC LIMIT 1"
_LAST = "SELECT seq, sum FROM events ORDER BY seq DESC LIMIT 1"
_FACT = "INSERT INTO session VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_TOPS = "SELECT seq FROM events WHERE kind = 'turn' AND parent IS NULL ORDER BY seq"
_TIDY_BYTES = 8 * 1024 * 1024
_PAGES = 2 * 4096  # of a write, for the write-ahead log, in addition to the text
_WAIT = 1.0
_PIECE = 256
_MAX_DIGITS = 15
_QUICK, _SURE = "PRAGMA synchronous = OFF", "PRAGMA synchronous = FULL"

_log = logging.getLogger(__name__)


class SqliteLog:
    """The open file of one session; `create` and `open` make it.

    Args:
        connection: The file.
        path: Where it is.
        now: The clock, in seconds since the epoch.
        disk_seconds: How long after it was brought to the disk that is due again.
        made: Whether the file was made now, so that nothing of it is on the disk.
        has_sums: Whether its events have checksums; files of the first version have none.
    """

    __slots__ = (
        "_connection",
        "_disk_seconds",
        "_has_sums",
        "_last",
        "_lock",
        "_made",
        "_now",
        "_sealed",
        "_settled_at",
        "_sum",
        "_untidied",
        "lock",
        "path",
        "redact",
    )

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        now: Callable[[], float],
        disk_seconds: float,
        *,
        made: bool = False,
        has_sums: bool = True,
    ) -> None:
        self._connection = connection
        self._lock = Lock()
        self._now = now
        self._disk_seconds = disk_seconds
        self._made = made
        self._settled_at = float("-inf")
        self._untidied = 0
        self._has_sums = has_sums
        # The last event and its checksum, and the last one that needs no new seal.
        self._last = self._sum = self._sealed = 0
        self.path = path
        self.redact: Callable[[str], str] | None = None
        """Hides secrets in what is written; None hides none."""
        self.lock: FileLock | None = None
        """Released when the log is closed; None where nothing else is kept from writing it."""

    @property
    def place(self) -> str:
        """The path of the file, as messages name it."""
        return str(self.path)

    @property
    def steps(self) -> Path:
        """The file of the steps of turns that are under way."""
        return self.path.with_suffix(".steps")

    @classmethod
    def create(
        cls,
        path: Path,
        facts: Mapping[str, str],
        now: Callable[[], float],
        disk_seconds: float = DISK_SECONDS,
    ) -> SqliteLog:
        """Make the file of a new session, for its owner only.

        Args:
            path: The file; it must not be there.
            facts: What is to be known of the session without its events.
            now: The clock, in seconds since the epoch.
            disk_seconds: How long after it was brought to the disk that is due again.

        Raises:
            SessionError: It cannot be made.
        """
        with _session_errors(path, "made"):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            connection = _connect(path, "rw")
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                upgrade_schema(connection)
                connection.execute("BEGIN")
                summed = {**facts, FACTS_SUM: facts_sum(facts)}
                connection.executemany("INSERT INTO session VALUES (?, ?)", list(summed.items()))
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                for name in (path, *_companions(path)):
                    name.unlink(missing_ok=True)
                raise
            return cls(connection, path, now, disk_seconds, made=True)

    @classmethod
    def open(
        cls,
        path: Path,
        now: Callable[[], float],
        disk_seconds: float = DISK_SECONDS,
        *,
        read_only: bool = False,
    ) -> SqliteLog:
        """Open the file of a session.

        Args:
            path: The file.
            now: The clock, in seconds since the epoch.
            disk_seconds: How long after it was brought to the disk that is due again.
            read_only: Leave it as it is; another process may be writing it.

        Raises:
            SessionError: It is missing, damaged, of a newer version, or no session.
        """
        with _session_errors(path, "opened"):
            connection = _connect(path, "ro" if read_only else "rw")
            try:
                # What only reads takes an older file as it is.
                if not check_schema(connection) and not read_only:
                    upgrade_schema(connection)
                has_sums = version_of(connection) >= FIRST_WITH_SUMS
                log = cls(connection, path, now, disk_seconds, has_sums=has_sums)
                if not read_only:
                    log._find_end()
            except BaseException:
                connection.close()
                raise
            return log

    def _find_end(self) -> None:
        """Find out where the events end, to write others after them."""
        found = self._connection.execute(_LAST).fetchone()
        if found is not None:
            if not isinstance(found[0], int):  # the table itself is damaged
                raise self.damage_error()
            self._last, self._sum = found[0], found[1] if isinstance(found[1], int) else 0
        self._sealed = self._last
        if self._last < self._seal_number():
            raise self.damage_error()
        lost = lost_writes(self.path)
        if lost:
            _log.warning(
                "session `%s` was not closed, and %d write%s at its end cannot be read: "
                "it continues from the events before them",
                self.path.stem,
                lost,
                "" if lost == 1 else "s",
            )

    @property
    def is_due(self) -> bool:
        """Whether it is time to bring it to the disk."""
        # Where the clock was set back, nothing is known of the time that passed.
        return not 0 <= self._now() - self._settled_at < self._disk_seconds

    @property
    def is_long(self) -> bool:
        """Whether the write-ahead log has become so long that it is to be tidied up."""
        return self._untidied > _TIDY_BYTES

    @property
    def facts(self) -> dict[str, str]:
        """What is known of the session without its events.

        Raises:
            SessionError: It is damaged.
        """
        with _session_errors(self.path, "read"):
            facts = self.read_facts()
            if self._has_sums and facts.get(FACTS_SUM) != facts_sum(facts):
                raise SessionError("its metadata is damaged", hint=self._salvage_hint)
            return facts

    def read_facts(self) -> dict[str, str]:
        """Read the facts, damaged or not."""
        with _session_errors(self.path, "read"):
            found = self._connection.execute("SELECT key, value FROM session")
            return {k: v for k, v in found if isinstance(k, str) and isinstance(v, str)}

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Write what is to be known of the session without its events, all or nothing.

        Raises:
            SessionError: It cannot be written.
        """
        with _session_errors(self.path, "written"), self._lock:
            total = facts_sum({**self.read_facts(), **facts})
            written = [*facts.items(), (FACTS_SUM, total)]
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_FACT, written)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @property
    def _salvage_hint(self) -> str:
        return f"`fast-agent session salvage {self.path.stem}` starts a session with what is intact"

    def append(self, *rows: Row) -> None:
        """Write events, all or none; a killed process does not lose them.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        try:
            with self._lock:
                self._insert(rows)
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise _problem(self.path, "written", error) from error

    def release(self) -> None:
        """Do nothing: the file stays this process's own until it is closed."""

    def acquire(self) -> bool:
        """Return True: nothing else can have written the file."""
        return True

    async def barrier(self) -> None:
        """Return at once: `append` already made its events safe from the end of the process."""

    def append_durably(self, *rows: Row) -> None:
        """Write events and bring them and all before them to the disk; waits for the disk.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        with _session_errors(self.path, "written"), self._lock:
            execute = self._connection.execute
            execute(_SURE)
            try:
                self._insert(rows)
                # The file itself is made without waiting, and gets there with the first of these.
                if self.is_long or self._made:
                    self._tidy()
            finally:
                execute(_QUICK)
            self._settled_at = self._now()

    def _tidy(self) -> None:
        self._untidied = 0
        _, _, moved = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._made = self._made and moved <= 0  # one who reads may stand in the way
        # The first write after that starts the write-ahead log again, for which the disk must wait.
        self._seal()

    def _seal(self) -> None:
        """Write how many events there are, so that the loss of the last ones would be noticed."""
        self._connection.execute(_FACT, (SEAL, f"{self._last} {self._sum}"))
        self._sealed = self._last

    def _insert(self, rows: Sequence[Row]) -> None:
        # One statement is one transaction, which costs more than the events in it.
        more = len(rows) - 1
        if self.redact is not None:
            rows = [hide(row, self.redact) for row in rows]
        values, number, total, size = summed(rows, self._now(), self._last, self._sum)
        insert = _INSERTS[more] if more < len(_INSERTS) else f"{_INSERT}{f', {_VALUES}' * more}"
        self._connection.execute(insert, values)
        self._last, self._sum = number, total
        self._untidied += _PAGES + size

    def append_all(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Write events of given times, all or none.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        with _session_errors(self.path, "written"), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                number, total = self._last, self._sum
                for at, row in rows:
                    hidden = (hide(row, self.redact),)
                    values, number, total, _ = summed(hidden, at, number, total)
                    self._connection.execute(_INSERT, values)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
            self._last, self._sum = number, total

    def rows(self, last: int | None = None) -> Iterator[Logged]:
        """Read every event with its number, in order, up to number `last`.

        Whether they are as they were written is known at the end.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            found = self._connection.execute(_ROWS, (_end(last),))
            number = total = 0
            while rows := found.fetchmany(_PIECE):
                total = chained_sum(rows, total)
                number = rows[-1][0]
                yield from rows
            if self._has_sums and not self._ends_with(number, total, last):
                raise self.damage_error()

    def _ends_with(self, number: int, total: int, last: int | None) -> bool:
        """Whether events end as they did when they were written."""
        found = self._connection.execute("SELECT sum FROM events WHERE seq = ?", (number,))
        written = next(found, (0,))[0]
        return is_chained(total, written) and number >= (
            self._seal_number() if last is None else last
        )

    def _seal_number(self) -> int:
        """Read how many events there were when the file was closed; 0 where that is not known."""
        number = self.read_facts().get(SEAL, "").partition(" ")[0]
        return int(number) if number.isdecimal() and len(number) < _MAX_DIGITS else 0

    def inspect(self) -> Inspection:
        """Check each event separately; this takes a while in a long session.

        Raises:
            SessionError: The file cannot be read at all.
        """
        with _session_errors(self.path, "read"):
            last = max(self._seal_number(), last_number(self._numbers()))
            return Inspection(self._event, last, has_sums=self._has_sums, damages=sqlite3.Error)

    def _numbers(self) -> Iterator[object]:
        """Read the numbers of all events, from both ends up to where the table is damaged."""
        for order in ("ASC", "DESC"):
            query = f"SELECT seq FROM events ORDER BY seq {order}"  # noqa: S608
            with suppress(sqlite3.Error):
                for (number,) in self._connection.execute(query):
                    yield number

    def _event(self, number: int) -> tuple[Any, ...] | None:
        """Read one event: the fields of its row, its time and its checksum."""
        sums = "sum" if self._has_sums else "NULL"
        query = f"SELECT {ROW_COLUMNS}, at, {sums} FROM events WHERE seq = ?"  # noqa: S608
        found: tuple[Any, ...] | None = self._connection.execute(query, (number,)).fetchone()
        return found

    def damage_error(self, damage: Damage | None = None) -> SessionError:
        """Make the error that names the damaged events; None searches for them."""
        damage = damage or self.inspect().damage
        said = str(damage) if damage.events else "its end is damaged"
        return SessionError(f"session `{self.path}`: {said}", hint=self._salvage_hint)

    def _checked(self, number: int) -> tuple[Row, float]:
        """Read one event and its time.

        Raises:
            SessionError: It is damaged.
        """
        found = self._event(number)
        if found is None:
            raise self.index_error()
        *fields, at, written = found
        row = Row._make(fields)
        if self._has_sums and not is_whole(number, row, at, written):
            raise self.damage_error()
        return row, at

    def times(self, last: int | None = None) -> dict[int, float]:
        """Read when each event happened, by its number, in seconds since the epoch.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            sums = "sum" if self._has_sums else "NULL"
            query = f"SELECT seq, {ROW_COLUMNS}, at, {sums} FROM events WHERE seq <= ?"  # noqa: S608
            times: dict[int, float] = {}
            for seq, *fields, at, written in self._connection.execute(query, (_end(last),)):
                if self._has_sums and not is_whole(seq, Row._make(fields), at, written):
                    raise self.damage_error()
                times[seq] = at
            return times

    def rewinds(self, last: int | None = None) -> list[tuple[int, int]]:
        """Read, for each rewind in order, the event it went back to and its own number.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            return self._connection.execute(_REWINDS, (_end(last),)).fetchall()

    def title(self) -> str | None:
        """Read the title given last.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            found = self._connection.execute(_TITLE).fetchone()
            return None if found is None else self._checked(found[0])[0].data or ""

    def root_turns(self) -> list[int]:
        """Read the numbers of the events with which turns began that nothing else started.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            return [seq for (seq,) in self._connection.execute(_TOPS)]

    def first_message(self, seq: int) -> Message:
        """Read the message a turn began with, by the number of the event.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            row, _ = self._checked(seq)
            return read(row.form, row.data or "")

    def changed(self) -> float | None:
        """Read when the last event happened, in seconds since the epoch; None without events.

        Raises:
            SessionError: The file is damaged.
        """
        with _session_errors(self.path, "read"):
            query = "SELECT seq FROM events ORDER BY seq DESC LIMIT 1"
            found = self._connection.execute(query).fetchone()
            return None if found is None else self._checked(found[0])[1]

    def check(self) -> None:
        """Check every event, and the indexes by which single ones are found.

        Raises:
            SessionError: Something is damaged; says what.
        """
        root_turns: list[int] = []
        rewinds: list[tuple[int | None, int]] = []
        title = None
        for seq, kind, _, _, parent, number, _, _, data in self.rows():
            if kind == TURN and parent is None:
                root_turns.append(seq)
            elif kind == REWOUND:
                rewinds.append((number, seq))
            elif kind == TITLED:
                title = data
        if (root_turns, rewinds, title) != (self.root_turns(), self.rewinds(), self.title()):
            raise self.index_error()
        # Reading these checks them.
        self.times()
        self.facts  # noqa: B018

    def index_error(self) -> SessionError:
        """Make the error that says that an index is damaged, and no event."""
        msg = f"session `{self.path}`: an index is damaged"
        return SessionError(msg, hint=self._salvage_hint)

    def close(self) -> None:
        """Close the file; what was written is brought to the disk."""
        with self._lock:
            with suppress(sqlite3.Error):  # closed before
                if self._last != self._sealed:
                    self._seal()
                self._connection.execute(_SURE)
            self._connection.close()
        if self.lock is not None:
            self.lock.release()


def remove_files(path: Path) -> None:
    """Delete the file of a session, which no process has open.

    Raises:
        SessionError: It cannot be deleted.
    """
    with _session_errors(path, "deleted"):
        path.unlink()
        for name in _companions(path):
            name.unlink(missing_ok=True)


def _end(last: int | None) -> int:
    return sys.maxsize if last is None else last


def _companions(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Threads take turns by the lock of the log; SQLite itself would refuse a second one.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_WAIT,
    )
    try:
        connection.execute(_QUICK)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def _session_errors(path: Path, doing: str) -> Generator[None]:
    """Make errors of SQLite and of files the errors of a session, with its place."""
    try:
        yield
    except (SessionError, sqlite3.Error, OSError, UnicodeDecodeError) as error:
        problem = _problem(path, doing, error)
        if problem is error:
            raise
        raise problem from error


def _problem(path: Path, doing: str, error: Exception) -> SessionError:
    match error:
        case SessionError() if str(path) in error.message:
            return error
        case SessionError():
            return SessionError(f"session `{path}`: {error.message}", hint=error.hint)
        case sqlite3.Error():
            text, hint = _reason(error)
        case OSError():
            text, hint = os_reason(error), None
        case UnicodeDecodeError():  # even the text of an error may be damaged
            text, hint = _DAMAGED
        case _:
            text, hint = str(error), None
    return SessionError(f"session `{path}` cannot be {doing}: {text}", hint=hint)


_DAMAGED = "the file is damaged", "`fast-agent session salvage ID` saves what is intact"


def _reason(error: sqlite3.Error) -> tuple[str, str | None]:
    if str(error).startswith("Could not decode"):  # which has no code
        return _DAMAGED
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return "the disk is full", "free some space and send the message again"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _DAMAGED
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another process is writing it", "end that process"
        case sqlite3.SQLITE_READONLY:
            return "it may not be written", "check the permissions of the file and its directory"
        case sqlite3.SQLITE_IOERR:
            return f"the disk refused it ({error})", "check the disk and the limits of file sizes"
        case _:
            return str(error), None
