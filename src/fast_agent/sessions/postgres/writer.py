"""Writer: one connection that writes the events of all open sessions, and keeps their leases.

Events are queued by any thread. The writer's thread takes all that is queued, of however many
sessions, and writes it with one statement, which is one transaction: while the database waits for
its disk, the next events gather. So a session alone is as fast as an INSERT, and many share the
disk.

A session is written by the process that holds its lease. Each time the lease is taken its fence
goes up by one, and every statement names fence, owner and the last event it follows: a process that
was suspended, cut off, or slow writes nothing once another one holds the session. Leases are
measured by the clock of the database alone.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

import psycopg

from fast_agent.errors import SessionError
from fast_agent.sessions.postgres.database import is_lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.sessions.postgres.database import Database, Line

# Rows as JSON, and their bodies as bytes: a list for each column takes psycopg 0.1 ms longer.
_WRITE = """
WITH moved AS (
    UPDATE fast_agent_session AS s SET head = n.head, sum = n.sum, turns = n.turns,
        title = n.title, first = n.first, changed = n.changed, touched = clock_timestamp()
    FROM json_to_recordset(%s::json) AS n(id text, owner text, fence bigint, before bigint,
        head bigint, sum bigint, turns int, title text, first text, changed float8)
    WHERE s.id = n.id AND s.owner = n.owner AND s.fence = n.fence AND s.head = n.before
    RETURNING s.id),
put AS (
    INSERT INTO fast_agent_event (session, seq, at, kind, top, number, body, sum)
    SELECT e.session, e.seq, e.at, e.kind, e.top, e.number, e.body, e.sum
    FROM ROWS FROM (json_to_recordset(%s::json) AS (session text, seq bigint, at float8,
        kind text, top bool, number bigint, sum bigint), unnest(%b::bytea[]))
        AS e(session, seq, at, kind, top, number, sum, body)
    JOIN moved ON moved.id = e.session)
SELECT id FROM moved"""
# A session alone mostly writes one event at a time, which this does in a seventh less time.
_WRITE_ONE = """
WITH moved AS (
    UPDATE fast_agent_session SET head = %b, sum = %b, turns = %b, title = %b, first = %b,
        changed = %b, touched = clock_timestamp()
    WHERE id = %b AND owner = %b AND fence = %b AND head = %b
    RETURNING id)
INSERT INTO fast_agent_event (session, seq, at, kind, top, number, sum, body)
SELECT id, %b, %b, %b, %b, %b, %b, %b FROM moved
RETURNING session"""
_SESSION_FIELDS = (
    *("id", "owner", "fence", "before", "head", "sum"),
    *("turns", "title", "first", "changed"),
)
_EVENT_FIELDS = ("session", "seq", "at", "kind", "top", "number", "sum")
_THERE = """
SELECT s.id FROM fast_agent_session AS s
JOIN json_to_recordset(%s::json) AS n(id text, owner text, fence bigint, head bigint)
    ON s.id = n.id AND s.owner = n.owner AND s.fence = n.fence AND s.head = n.head"""
_RESTORE = """
UPDATE fast_agent_session SET lease = clock_timestamp() + make_interval(secs => %s)
WHERE id = %s AND owner = %s AND fence = %s
RETURNING head, sum, turns, title, first"""
# Leases need not reach the database's disk: a lost one belongs to a process that cannot write.
_RENEW = """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_set)
UPDATE fast_agent_session AS s SET lease = clock_timestamp() + make_interval(secs => %b)
FROM quick, unnest(%b::text[], %b::text[]) AS n(id, owner)
WHERE quick.is_set IS NOT NULL AND s.id = n.id AND s.owner = n.owner
RETURNING s.id"""
_MIN_PAUSE, _MAX_PAUSE = 0.05, 1.0


RowColumns: TypeAlias = "tuple[int, int, int, str | None, str]"
"""What the row of a session holds of its events, in the order of `Columns`."""

Then: TypeAlias = "Callable[[SessionError | None], None]"


@dataclass(eq=False, slots=True, kw_only=True)
class Hold:
    """A session this process holds the lease of.

    Args:
        session_id: The session.
        owner: Names this hold; no other has the same.
        fence: How often the lease was taken.
        queued: The number of the last event that was queued.
        written: The number of the last event that is in the database.
        problem: Why what was queued is lost, and nothing is written any more; None while it is.
        restored: What the database has of the session, where writing may begin anew after a
            problem; None where it may not: it is away, or another process holds the session.
        waiters: Called once the event of a number is written, or with the problem that lost it.
    """

    session_id: str
    owner: str
    fence: int
    queued: int
    written: int
    problem: SessionError | None = None
    restored: RowColumns | None = None
    waiters: list[tuple[int, Then]] = field(default_factory=list)

    @property
    def is_pending(self) -> bool:
        """Whether events are queued that are not in the database."""
        return self.problem is None and self.written < self.queued


@dataclass(slots=True)
class Write:
    """Events of one session that follow each other, to be written together.

    Args:
        hold: The session.
        before: The number of the event they follow.
        head: The number and checksum of the last of them.
        listed: The columns of a listing after them: turns, title, first message, time.
        events: The values of each: number, time, kind, whether a turn nothing else started, number
            of the row or None, checksum, the rest of the row.
    """

    hold: Hold
    before: int
    head: tuple[int, int]
    listed: tuple[int, str | None, str, float]
    events: list[tuple[int, float, str, bool, int | None, int, bytes]]

    def follow(self, later: Write) -> None:
        """Take events on that follow these."""
        self.head, self.listed = later.head, later.listed
        self.events += later.events


class Writer:
    """Writes events and renews leases in a thread that lives while sessions are held.

    Args:
        database: Where to.
        lease_seconds: How long a lease lasts; it is renewed three times as often.
    """

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self._database = database
        self.lease_seconds = lease_seconds
        self._changed = threading.Condition()
        self._queue: list[Write] = []
        self._held: dict[str, Hold] = {}
        self._thread: threading.Thread | None = None
        self._connection: Line | None = None
        self._renewed_at = 0.0

    def hold(self, hold: Hold) -> None:
        """Keep the lease of a session from now on."""
        with self._changed:
            if not self._held:
                self._renewed_at = monotonic()
            self._held[hold.owner] = hold
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="fast-agent-postgres", daemon=True
                )
                self._thread.start()

    def stop_renewing(self, hold: Hold) -> None:
        """Renew the lease of a session no more."""
        with self._changed:
            self._held.pop(hold.owner, None)
            self._changed.notify()

    def put(self, write: Write) -> None:
        """Queue events.

        Raises:
            SessionError: Earlier ones could not be written.
        """
        with self._changed:
            if write.hold.problem is not None:
                raise write.hold.problem
            write.hold.queued = write.head[0]
            self._queue.append(write)
            self._changed.notify()

    def restart_after_loss(self, hold: Hold) -> RowColumns | None:
        """Write a session again after a problem, from what the database has of it.

        Returns:
            The columns of its row; None where it is still as it was.
        """
        with self._changed:
            columns = hold.restored
            if columns is not None:
                hold.problem = hold.restored = None
                hold.queued = hold.written = columns[0]
            return columns

    def when_written(self, hold: Hold, then: Then) -> None:
        """Call a function, in any thread, once all that was queued of a session is written.

        Args:
            hold: The session.
            then: The function, given why it is not; it must not raise, nor wait.
        """
        with self._changed:
            if hold.is_pending:
                hold.waiters.append((hold.queued, then))
                return
            problem = hold.problem
        then(problem)

    def flush(self, hold: Hold) -> None:
        """Wait until all that was queued of a session is written.

        Raises:
            SessionError: It cannot be written.
        """
        written, problems = threading.Event(), list[SessionError]()

        def reach(problem: SessionError | None) -> None:
            if problem is not None:
                problems.append(problem)
            written.set()

        self.when_written(hold, reach)
        written.wait()
        if problems:
            raise problems[0]

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and self._held and (left := self._until_renewal()) > 0:
                    self._changed.wait(left)
                if not self._queue and not self._held:
                    self._thread = None
                    connection, self._connection = self._connection, None
                    break
                queue, self._queue = self._queue, []
            if queue:
                self._write(_joined(queue))
            if self._until_renewal() <= 0:
                self._renew()
        if connection is not None:
            self._database.release_connection(connection)

    def _until_renewal(self) -> float:
        return self._renewed_at + self.lease_seconds / 3 - monotonic()

    def _write(self, writes: Sequence[Write]) -> None:
        """Write events of several sessions, again and again for as long as a lease lasts."""
        end, pause, again = monotonic() + self.lease_seconds, _MIN_PAUSE, False
        while True:
            try:
                done = self._try(writes, again=again)
            except psycopg.Error as error:
                if is_lost(error) and monotonic() < end:
                    again = True
                    self._drop_connection()
                    threading.Event().wait(pause)
                    pause = min(2 * pause, _MAX_PAUSE)
                    continue
                if len(writes) > 1 and not is_lost(error):
                    # One session must not keep the others from being written.
                    for write in writes:
                        self._write([write])
                    return
                done, problem = set[str](), self._database.problem(error)
            except SessionError as error:
                done, problem = set[str](), self._database.problem(error)
            else:
                problem = SessionError("another process took it over")
            for write in writes:
                self._finish(write, None if write.hold.session_id in done else problem)
            return

    def _try(self, writes: Sequence[Write], *, again: bool) -> set[str]:
        """Write events, and return the sessions whose events are in the database."""
        if not again and len(writes) == 1 == len(writes[0].events):
            write = writes[0]
            hold = write.hold
            named = (hold.session_id, hold.owner, hold.fence, write.before)
            values = (*write.head, *write.listed, *named, *write.events[0])
            found = self._connected().execute(_WRITE_ONE, values, prepare=True)
            return {one for (one,) in found.fetchall()}
        sessions, events, bodies = list[object](), list[object](), list[bytes]()
        for write in writes:
            hold = write.hold
            named = (hold.session_id, hold.owner, hold.fence, write.before)
            columns = (*named, *write.head, *write.listed)
            sessions.append(dict(zip(_SESSION_FIELDS, columns, strict=True)))
            for *event, body in write.events:
                event_columns = (hold.session_id, *event)
                events.append(dict(zip(_EVENT_FIELDS, event_columns, strict=True)))
                bodies.append(body)
        values = (json.dumps(sessions), json.dumps(events), bodies)
        connection = self._connected()
        done = {one for (one,) in connection.execute(_WRITE, values, prepare=True).fetchall()}
        if again and len(done) < len(writes):
            # The answer was lost, so the events may be there. Asked afterwards: until the lost
            # statement has ended, this one waits for its rows, and would find nothing before.
            found = connection.execute(_THERE, values[:1], prepare=True)
            done.update(one for (one,) in found.fetchall())
        return done

    def _finish(self, write: Write, problem: SessionError | None) -> None:
        hold = write.hold
        if problem is not None:
            self._restore([hold])
        with self._changed:
            if problem is None:
                hold.written = write.head[0]
                reached = [then for number, then in hold.waiters if number <= hold.written]
                hold.waiters = [one for one in hold.waiters if one[0] > hold.written]
            else:
                reached = self._fail(hold, problem)
            problem = hold.problem
        for then in reached:
            then(problem)

    def _fail(self, hold: Hold, problem: SessionError) -> list[Then]:
        """Write nothing more of a session, and return who waited for it."""
        hold.problem = SessionError(
            f"session `{hold.session_id}` cannot be written: {problem.message}",
            hint=problem.hint or f"`fast-agent go --resume {hold.session_id}` opens it again",
        )
        self._queue = [write for write in self._queue if write.hold is not hold]
        waiters, hold.waiters = hold.waiters, []
        return [then for _, then in waiters]

    def _restore(self, holds: Iterable[Hold]) -> None:
        """Find out what the database has of sessions after a problem; nothing while it is away."""
        connection = self._connection
        if connection is None:
            return
        for hold in holds:
            values = (self.lease_seconds, hold.session_id, hold.owner, hold.fence)
            try:
                found = connection.execute(_RESTORE, values).fetchone()
            except psycopg.Error:
                self._drop_connection()
                return
            with self._changed:
                hold.restored = found

    def _renew(self) -> None:
        with self._changed:
            holds = list(self._held.values())
        # Tried again after a while if it fails; a lease that expired in between is still ours if
        # no other process took it.
        self._renewed_at = monotonic()
        if not holds:
            return
        ids, owners = [hold.session_id for hold in holds], [hold.owner for hold in holds]
        try:
            found = self._connected().execute(_RENEW, (self.lease_seconds, ids, owners))
            kept = {one for (one,) in found.fetchall()}
        except (psycopg.Error, SessionError):
            self._drop_connection()
            return
        self._restore([hold for hold in holds if hold.problem is not None])
        for hold in holds:
            if hold.session_id in kept:
                continue
            with self._changed:
                is_ours = self._held.pop(hold.owner, None) is not None  # not released just now
                problem = SessionError("another process took it over")
                reached = self._fail(hold, problem) if is_ours else []
            for then in reached:
                then(hold.problem)

    def _connected(self) -> Line:
        if self._connection is None:
            self._connection = self._database.take()
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _joined(queue: Sequence[Write]) -> list[Write]:
    """Join the events of each session, which a statement can move once only."""
    joined: dict[Hold, Write] = {}
    for write in queue:
        first = joined.get(write.hold)
        if first is None:
            joined[write.hold] = write
        else:
            first.follow(write)
    return list(joined.values())


def new_owner() -> str:
    """Name a new hold: this machine, this process, and a part unique among its holds."""
    return f"{_machine()} {os.getpid()} {uuid4().hex[:12]}"


def is_dead(owner: str) -> bool:
    """Whether a hold is of a process of this machine that has ended."""
    machine, pid, *_ = (*owner.split(" "), "", "")
    if machine != _machine() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _machine() -> str:
    """Name this machine until its next start, and the processes whose numbers count here."""
    parts = [socket.gethostname()]
    for source in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        try:
            text = str(source.readlink()) if source.is_symlink() else source.read_text()
        except OSError:
            continue
        parts.append("".join(filter(str.isalnum, text))[-12:])
    return "/".join(parts).replace(" ", "")
