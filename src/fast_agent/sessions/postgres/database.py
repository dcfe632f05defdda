"""Database: connections to the PostgreSQL database sessions are in, and what its errors mean."""

from __future__ import annotations

import re
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeAlias
from urllib.parse import urlsplit
from weakref import finalize

import psycopg
from psycopg import Connection
from psycopg.errors import UndefinedTable

from fast_agent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from psycopg.waiting import Ready, Wait

Waits: TypeAlias = "Generator[Wait, Ready | int, Any]"
"""An operation of a connection, as it waits for its socket."""

Values: TypeAlias = "Sequence[object] | Mapping[str, object]"
"""The values of a statement, by place or by name."""

Step: TypeAlias = "Sequence[LiteralString]"
"""Statements that upgrade the tables by one version."""

LOCK = 0x46415345
"""The advisory lock that lets one process at a time upgrade the tables."""

STEPS: tuple[Step, ...] = (
    (
        # Columns not in the facts are what a listing shows. The free space on each page lets the
        # row, which moves with every append, stay on its page and out of the indexes.
        """CREATE TABLE fast_agent_session (
            id text PRIMARY KEY, facts text NOT NULL, alias text UNIQUE,
            head bigint NOT NULL DEFAULT 0, sum bigint NOT NULL DEFAULT 0,
            turns integer NOT NULL DEFAULT 0, title text, first text NOT NULL DEFAULT '',
            created double precision NOT NULL, changed double precision NOT NULL,
            touched timestamptz NOT NULL DEFAULT clock_timestamp(),
            owner text, fence bigint NOT NULL DEFAULT 0, lease timestamptz
        ) WITH (fillfactor = 60)""",
        # `body` is bytes, since a PostgreSQL text cannot contain the character NUL.
        """CREATE TABLE fast_agent_event (
            session text NOT NULL, seq bigint NOT NULL, at double precision NOT NULL,
            kind text NOT NULL, top boolean NOT NULL, number bigint, body bytea NOT NULL,
            sum bigint NOT NULL, PRIMARY KEY (session, seq))""",
        """CREATE INDEX fast_agent_mark ON fast_agent_event (session, seq)
            WHERE top OR kind IN ('rewound', 'titled')""",
    ),
    (
        # The steps of turns that are under way, by their names in the session.
        """CREATE TABLE fast_agent_step (
            session text NOT NULL, name text NOT NULL, body bytea NOT NULL,
            PRIMARY KEY (session, name))""",
    ),
    (
        # What was sent of each entry of `model_limits` in the last minute, by seconds: requests
        # and tokens.
        """CREATE TABLE fast_agent_limit (
            name text PRIMARY KEY, seconds jsonb NOT NULL DEFAULT '{}')""",
    ),
)
"""Step `n` upgrades the tables from version `n` to version `n + 1`."""

_VERSION = "SELECT version FROM fast_agent_meta"


def upgrade_schema(connection: Line, steps: Sequence[Step] = STEPS) -> None:
    """Create the tables, or upgrade those of an older version; all or nothing.

    Args:
        connection: A connection outside a transaction, with autocommit.
        steps: The steps of all versions.

    Raises:
        SessionError: The tables are of a newer version.
    """
    if _version(connection) == len(steps):
        return
    patience, connection.patience = connection.patience, _UPGRADE_SECONDS
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS fast_agent_meta (version integer NOT NULL)")
        # Another process may have upgraded them while this one waited for the lock.
        found = connection.execute(_VERSION).fetchone()
        version = 0 if found is None else int(found[0])
        if version > len(steps):
            raise SessionError(
                f"its sessions are of version {version}, and this program knows"
                f" {len(steps)} at most",
                hint="use the newer version of fast-agent that wrote them",
            )
        for step in steps[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute("DELETE FROM fast_agent_meta")
        connection.execute("INSERT INTO fast_agent_meta VALUES (%s)", (len(steps),))
    connection.patience = patience


def _version(connection: Line) -> int:
    try:
        found = connection.execute(_VERSION).fetchone()
    except UndefinedTable:
        return 0
    return 0 if found is None else int(found[0])


_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 10
"""How long a database may stay silent while it is asked: it is taken for lost after this."""
_UPGRADE_SECONDS = 600
"""The same while tables are upgraded, which other processes wait for."""
_MAX_IDLE = 4
_LOST = ("08", "57P")
_CONFLICTS = frozenset({"40001", "40P01"})
_SECRET = re.compile(r"(://[^:@/\s]*:)[^@/\s]*(?=@)|(password=)\S+")


class Line(Connection[Any]):
    """A connection whose database is lost once it stays silent for too long.

    The time-outs of TCP do not cover a database that acknowledges and never answers: one that is
    suspended, or behind a proxy that lost it.

    Attributes:
        patience: For how many seconds it may stay silent.
    """

    patience: float = _ANSWER_SECONDS

    # Versions of psycopg differ in what comes after the generator.
    def wait(self, gen: Waits, *arguments: Any, **named: Any) -> Any:
        """Run an operation until it is done.

        Raises:
            psycopg.OperationalError: The database stayed silent.
        """
        return super().wait(self._with_deadline(gen), *arguments, **named)

    def _with_deadline(self, gen: Waits) -> Waits:
        try:
            wanted = next(gen)
            end = monotonic() + self.patience
            while True:
                ready = yield wanted
                if ready:
                    end = monotonic() + self.patience
                elif monotonic() >= end:
                    raise psycopg.OperationalError(f"no answer for {self.patience} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


class Database:
    """A database, connected when it is first needed.

    Args:
        url: Its address, with user and password.

    Attributes:
        name: Its address without password and options, as messages name it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = _shown(url)
        self._idle: list[Line] = []
        self._lock = Lock()
        self._is_ready = False
        self._is_pooled = False
        """Whether a pooler is in between, which may give each statement another connection."""
        finalize(self, _close_all, self._idle)

    def connect(self) -> Line:
        """Open a connection that commits every statement; the caller closes it.

        Raises:
            psycopg.Error: The database cannot be reached, or refuses.
            SessionError: Its tables are of a newer version.
        """
        connection = Line.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            keepalives_idle=_ANSWER_SECONDS,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=_ANSWER_SECONDS * 1000,
            application_name="fast-agent",
        )
        try:
            if not self._is_ready:
                upgrade_schema(connection)
                self._is_pooled = _is_pooled(connection)
                self._is_ready = True
        except BaseException:
            connection.close()
            raise
        if self._is_pooled:
            # Another client's statement may have the name by which this one would be run.
            connection.prepare_threshold = None
        return connection

    def query(self, statement: LiteralString, values: Values = ()) -> list[Any]:
        """Run a statement that may be repeated, and return its rows.

        Raises:
            SessionError: The database cannot be reached, or refuses.
        """
        try:
            connection = self._idle_one()
            if connection is not None:
                try:
                    return self._rows(connection, statement, values)
                except psycopg.Error as error:
                    # The connection was idle, and the server may have been restarted in between.
                    if not is_lost(error):
                        raise
            return self._rows(self.connect(), statement, values)
        except (psycopg.Error, SessionError) as error:
            raise self.problem(error) from error

    def _rows(
        self,
        connection: Line,
        statement: LiteralString,
        values: Values,
    ) -> list[Any]:
        try:
            found = connection.execute(statement, values, binary=True)
            rows = found.fetchall() if found.description is not None else []
        except BaseException:
            connection.close()
            raise
        self.release_connection(connection)
        return rows

    def take(self) -> Line:
        """Return a connection that is not in use; see `connect`. It may have been lost since."""
        return self._idle_one() or self.connect()

    def release_connection(self, connection: Line) -> None:
        """Keep a connection for the next who needs one."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _idle_one(self) -> Line | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def close(self) -> None:
        """Close the connections that are not in use."""
        with self._lock:
            _close_all(self._idle)

    def problem(self, error: Exception) -> SessionError:
        """Return an error of the database as one of its sessions, without its password."""
        if isinstance(error, SessionError):
            return SessionError(f"database `{self.name}`: {error.message}", hint=error.hint)
        text, hint = _reason(error)
        return SessionError(f"database `{self.name}`: {text}", hint=hint)


def is_lost(error: psycopg.Error) -> bool:
    """Whether an error means that the connection is gone or the server stopped, not a refusal."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state.startswith(_LOST) or state in _CONFLICTS


def _is_pooled(connection: Line) -> bool:
    """Whether statements are run by another process than the one that greeted: PgBouncer's."""
    found = connection.execute("SELECT pg_backend_pid()").fetchone()
    return found is None or found[0] != connection.info.backend_pid


def _close_all(connections: list[Line]) -> None:
    while connections:
        connections.pop().close()


def _shown(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname or "localhost", parts.port, parts.username
    except ValueError:
        return "postgres://…"
    place = host if port is None else f"{host}:{port}"
    return f"postgres://{f'{user}@' if user else ''}{place}{parts.path}"


_REFUSALS: Final = (
    (
        "password authentication failed",
        "it rejects the user or the password",
        "check `sessions.url`",
    ),
    (
        r"FATAL:\s+(database|role) .* does not exist",
        "it has no such database or user",
        "create it, or correct `sessions.url`",
    ),
    (
        "too many clients already|connection slots are reserved|no more connections allowed",
        "it has no connection left",
        "raise `max_connections` there, or have a pooler share them",
    ),
)
"""Patterns of what servers and poolers say, with the reason and the remedy."""


def _reason(error: Exception) -> tuple[str, str | None]:
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    match state:
        case "53100":
            return "its disk is full", "free some space there and send the message again"
        case "42501":
            return "its user may not do this", "grant it CREATE once, then SELECT to DELETE"
        case "25006":
            return "it is read-only", "name the primary server in `sessions.url`"
        case _:
            # Of several lines the last says what happened, unless it asks or advises.
            lines = [
                line.strip()
                for line in str(error).splitlines()
                if line.strip()[-1:] not in {"", "?"}
            ]
            certificate = next((line for line in lines if "certificate" in line), None)
            text = certificate or (lines[-1] if lines else type(error).__name__)
            text = _SECRET.sub(r"\1\2***", text)
    # An error of connecting has a text and no code.
    for pattern, reason, hint in _REFUSALS:
        if re.search(pattern, text):
            return reason, hint
    if isinstance(error, psycopg.ProgrammingError) and state is None:  # of the address itself
        return "its address cannot be read", "check `sessions.url`"
    if not isinstance(error, psycopg.OperationalError) or (state and not state.startswith(_LOST)):
        return text, None
    if certificate is not None:
        hint = "set `PGSSLROOTCERT` to the file that certifies it, or to `system`"
        return f"it cannot be trusted ({text})", hint
    return f"it cannot be reached ({text})", "check that it runs, and `sessions.url`"
