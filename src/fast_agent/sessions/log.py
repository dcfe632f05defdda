"""Event log: the SQLite file of one session.

What is written at once is one transaction in the write-ahead log, so that it is there whole or not
at all when the process is killed; SQLite is told not to wait for the disk for that. `append_surely`
brings it to the disk itself, where a loss of power does not reach it, and tidies the write-ahead
log up, which nothing else does: that must wait for the disk to be safe. It is meant for a worker
thread; `is_due` and `is_long` say when it is time.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from fast_agent.config.bounds import DISK_SECONDS
from fast_agent.errors import SessionError
from fast_agent.sessions.message_text import read
from fast_agent.sessions.row import COLUMNS
from fast_agent.sessions.schema import bring_up, check_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.messages.message import Message
    from fast_agent.sessions.row import Logged, Row

_VALUES = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT = f"INSERT INTO events (at, {COLUMNS}) VALUES {_VALUES}"  # noqa: S608
_INSERTS = tuple([_INSERT + f", {_VALUES}" * more for more in range(8)])
_ROWS = f"SELECT seq, {COLUMNS} FROM events WHERE seq <= ? ORDER BY seq"  # noqa: S608
_REWINDS = "SELECT number, seq FROM events WHERE kind = 'rewound' AND seq <= ? ORDER BY seq"
_TITLE = "SELECT data FROM events WHERE kind = 'titled' ORDER BY seq DESC LIMIT 1"
_TOPS = "SELECT seq FROM events WHERE kind = 'turn' AND parent IS NULL ORDER BY seq"
_TIDY_BYTES = 8 * 1024 * 1024
_PAGES = 2 * 4096  # of a write, for the write-ahead log, besides the text
_WAIT = 1.0
_PIECE = 1024
_QUICK, _SURE = "PRAGMA synchronous = OFF", "PRAGMA synchronous = FULL"


class EventLog:
    """The open file of one session; `create` and `open` make it.

    Args:
        connection: The file.
        path: Where it is.
        now: The clock, in seconds since the epoch.
        disk_seconds: How long after it was brought to the disk that is due again.
        made: Whether the file was made now, so that nothing of it is on the disk.
    """

    __slots__ = (
        "_connection",
        "_disk_seconds",
        "_lock",
        "_made",
        "_now",
        "_settled_at",
        "_untidied",
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
    ) -> None:
        self._connection = connection
        self._lock = Lock()
        self._now = now
        self._disk_seconds = disk_seconds
        self._made = made
        self._settled_at = float("-inf")
        self._untidied = 0
        self.path = path
        self.redact: Callable[[str], str] | None = None
        """Hides secrets in what is written; None hides none."""

    @classmethod
    def create(
        cls,
        path: Path,
        facts: Mapping[str, str],
        now: Callable[[], float],
        disk_seconds: float = DISK_SECONDS,
    ) -> EventLog:
        """Make the file of a new session, for its owner only.

        Args:
            path: The file; it must not be there.
            facts: What is to be known of the session without its events.
            now: The clock, in seconds since the epoch.
            disk_seconds: How long after it was brought to the disk that is due again.

        Raises:
            SessionError: It cannot be made.
        """
        with _told(path, "made"):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            connection = _connect(path, "rw")
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                bring_up(connection)
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO session VALUES (?, ?)", list(facts.items()))
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
    ) -> EventLog:
        """Open the file of a session.

        Args:
            path: The file.
            now: The clock, in seconds since the epoch.
            disk_seconds: How long after it was brought to the disk that is due again.
            read_only: Leave it as it is; another process may be writing it.

        Raises:
            SessionError: It is missing, damaged, of a newer version, or no session.
        """
        with _told(path, "opened"):
            connection = _connect(path, "ro" if read_only else "rw")
            try:
                current = check_schema(connection)
                if not current and read_only:
                    raise SessionError(
                        "the session is of an older version", hint="resume it once to bring it up"
                    )
                if not current:
                    bring_up(connection)
            except BaseException:
                connection.close()
                raise
            return cls(connection, path, now, disk_seconds)

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
        """What is known of the session without its events."""
        with _told(self.path, "read"):
            return dict(self._connection.execute("SELECT key, value FROM session"))

    def append(self, *rows: Row) -> None:
        """Write events, all or none; a killed process does not lose them.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        try:
            with self._lock:
                self._insert(rows)
        except (sqlite3.Error, OSError) as error:
            raise _problem(self.path, "written", error) from error

    def append_surely(self, *rows: Row) -> None:
        """Write events and bring them and all before them to the disk; waits for the disk.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        with _told(self.path, "written"), self._lock:
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
        # The first write after that begins the write-ahead log anew, for which the disk must wait.
        self._connection.execute("UPDATE session SET value = value WHERE key = 'id'")

    def _insert(self, rows: Sequence[Row]) -> None:
        # One statement is one transaction, which costs more than the events in it.
        more, now = len(rows) - 1, self._now()
        values: list[float | str | None] = []
        size = _PAGES
        for row in map(self._hidden, rows):
            values.append(now)
            values += row
            size += len(row.data or "")
        insert = _INSERTS[more] if more < len(_INSERTS) else f"{_INSERT}{f', {_VALUES}' * more}"
        self._connection.execute(insert, values)
        self._untidied += size

    def _hidden(self, row: Row) -> Row:
        """Return a row with the secrets in its text hidden."""
        if self.redact is None or row.data is None:
            return row
        hidden = self.redact(row.data)
        return row if hidden is row.data else row._replace(data=hidden)

    def append_all(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Write events of given times, all or none.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        with _told(self.path, "written"), self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                values = ((at, *self._hidden(row)) for at, row in rows)
                self._connection.executemany(_INSERT, values)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def rows(self, last: int | None = None) -> Iterator[Logged]:
        """Read every event with its number, in order, up to number `last`.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            found = self._connection.execute(_ROWS, (_end(last),))
            while rows := found.fetchmany(_PIECE):
                yield from rows

    def times(self, last: int | None = None) -> dict[int, float]:
        """Read when each event happened, by its number, in seconds since the epoch.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            query = "SELECT seq, at FROM events WHERE seq <= ?"
            return dict(self._connection.execute(query, (_end(last),)))

    def rewinds(self, last: int | None = None) -> list[tuple[int, int]]:
        """Read, for each rewind in order, the event it went back to and its own number.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            return self._connection.execute(_REWINDS, (_end(last),)).fetchall()

    def title(self) -> str | None:
        """Read the title given last.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            found = self._connection.execute(_TITLE).fetchone()
            return None if found is None else str(found[0])

    def tops(self) -> list[int]:
        """Read the numbers of the events with which turns began that nothing else started.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            return [seq for (seq,) in self._connection.execute(_TOPS)]

    def first_message(self, seq: int) -> Message:
        """Read the message a turn began with, by the number of the event.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            query = "SELECT form, data FROM events WHERE seq = ?"
            form, data = self._connection.execute(query, (seq,)).fetchone()
            return read(form, data)

    def changed(self) -> float | None:
        """Read when the last event happened, in seconds since the epoch; None without events.

        Raises:
            SessionError: The file is damaged.
        """
        with _told(self.path, "read"):
            query = "SELECT at FROM events ORDER BY seq DESC LIMIT 1"
            found = self._connection.execute(query).fetchone()
            return None if found is None else float(found[0])

    def close(self) -> None:
        """Close the file; what was written is brought to the disk."""
        with self._lock:
            with suppress(sqlite3.Error):  # closed before
                self._connection.execute(_SURE)
            self._connection.close()


def remove_files(path: Path) -> None:
    """Delete the file of a session, which nobody has open.

    Raises:
        SessionError: It cannot be deleted.
    """
    with _told(path, "deleted"):
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
def _told(path: Path, doing: str) -> Generator[None]:
    """Make errors of SQLite and of files the errors of a session, with its place."""
    try:
        yield
    except (SessionError, sqlite3.Error, OSError) as error:
        told = _problem(path, doing, error)
        if told is error:
            raise
        raise told from error


def _problem(path: Path, doing: str, error: Exception) -> SessionError:
    match error:
        case SessionError() if str(path) in error.message:
            return error
        case SessionError():
            return SessionError(f"session `{path}`: {error.message}", hint=error.hint)
        case sqlite3.Error():
            text, hint = _reason(error)
        case OSError():
            text, hint = (error.strerror or str(error)).lower(), None
        case _:
            text, hint = str(error), None
    return SessionError(f"session `{path}` cannot be {doing}: {text}", hint=hint)


def _reason(error: sqlite3.Error) -> tuple[str, str | None]:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return "the disk is full", "make room and send the message again"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return "the file is damaged", "put a copy in its place, or delete the session"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another process is writing it", "end that process"
        case sqlite3.SQLITE_READONLY:
            return "it may not be written", "look at the permissions of the file and its directory"
        case sqlite3.SQLITE_IOERR:
            return f"the disk refused it ({error})", "look at the disk, and at limits of file sizes"
        case _:
            return str(error), None
