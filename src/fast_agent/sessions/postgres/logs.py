"""PostgreSQL logs: the sessions of a database."""

from __future__ import annotations

import json
from math import ceil
from time import monotonic, sleep
from typing import TYPE_CHECKING

from fast_agent.config.settings import LEASE_SECONDS
from fast_agent.errors import SessionError, SessionInUseError
from fast_agent.sessions.facts import SessionFacts, SessionSummary
from fast_agent.sessions.postgres.database import Database
from fast_agent.sessions.postgres.log import Columns, Lease, PostgresLog
from fast_agent.sessions.postgres.writer import Hold, Writer, is_dead, new_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CREATE = """
INSERT INTO fast_agent_session (id, facts, alias, created, changed, owner, fence, lease)
VALUES (%s, %s, %s, %s, %s, %s, 1, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET fence = 1
    WHERE fast_agent_session.owner = excluded.owner AND fast_agent_session.head = 0
RETURNING fence"""
# The lease need not be on the disk: the first event brings it there, and fails where it was lost.
_ACQUIRE = """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_set)
UPDATE fast_agent_session SET owner = %s, fence = fence + 1,
    lease = clock_timestamp() + make_interval(secs => %s)
FROM quick WHERE quick.is_set IS NOT NULL AND id = %s
    AND (owner IS NULL OR lease < clock_timestamp() OR owner = %s OR owner = %s)
RETURNING fence, head, sum, turns, title, first"""
_RELEASE = """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_set)
UPDATE fast_agent_session SET owner = NULL, lease = NULL
FROM quick WHERE quick.is_set IS NOT NULL AND id = %s AND owner = %s"""
_HOLDER = """
SELECT owner, extract(epoch FROM lease - clock_timestamp())::float8
FROM fast_agent_session WHERE id = %s"""
_REMOVE = """
WITH gone AS (DELETE FROM fast_agent_session WHERE id = %s AND owner = %s RETURNING id),
steps AS (DELETE FROM fast_agent_step WHERE session IN (SELECT id FROM gone))
DELETE FROM fast_agent_event WHERE session IN (SELECT id FROM gone)"""
_LIST = "SELECT id, facts, turns, title, first, changed FROM fast_agent_session"
_ALIASED = """
SELECT id FROM fast_agent_session
WHERE alias = %s AND touched > clock_timestamp() - make_interval(secs => %s)"""
_MIN_PAUSE, _MAX_PAUSE = 0.02, 0.5


class PostgresLogs:
    """The sessions of a database, any of which any number of processes may take up in turn.

    Args:
        url: The address of the database, with user and password.
        now: The clock for the times of events, in seconds since the epoch.
        lease_seconds: How long a process that stopped answering keeps a session; None is 30.
        wait_seconds: How long to wait for a session that another process is using.
    """

    is_shared = True

    def __init__(
        self,
        url: str,
        now: Callable[[], float],
        *,
        lease_seconds: float | None = None,
        wait_seconds: float = 0.0,
    ) -> None:
        self._database = Database(url)
        self._now = now
        self._lease_seconds = LEASE_SECONDS if lease_seconds is None else lease_seconds
        self._wait_seconds = wait_seconds
        self._lease = Lease(
            Writer(self._database, self._lease_seconds), self._acquired, self._released
        )

    @property
    def name(self) -> str:
        """The address of the database without password, as messages name it."""
        return self._database.name

    def create(self, facts: Mapping[str, str]) -> PostgresLog:
        """Make a new session and hold it.

        Args:
            facts: What is to be known of it without its events; `id` and `created` among them, and
                `alias` where it is to be found by one.

        Raises:
            SessionError: It cannot be made.
        """
        session_id, created, owner = facts["id"], float(facts["created"]), new_owner()
        values = (
            session_id,
            json.dumps(dict(facts)),
            facts.get("alias"),
            created,
            created,
            owner,
            self._lease_seconds,
        )
        if not self._database.query(_CREATE, values):
            raise SessionError(f"there is a session `{session_id}` in `{self.name}` already")
        hold = Hold(session_id=session_id, owner=owner, fence=1, queued=0, written=0)
        log = self.read(session_id)
        log.hold(self._lease, hold, Columns())
        return log

    def open(self, session_id: str) -> PostgresLog:
        """Hold a session, as soon as no other process does.

        Raises:
            SessionError: There is none, another process uses it, or the database cannot be reached.
        """
        hold, columns = self._acquired(session_id)
        log = self.read(session_id)
        log.hold(self._lease, hold, columns)
        return log

    def read(self, session_id: str) -> PostgresLog:
        """Return the log of a session for reading; another process may be writing it."""
        return PostgresLog(self._database, session_id, self._now)

    def has(self, session_id: str) -> bool:
        """Whether there is a session of this id.

        Raises:
            SessionError: The database cannot be reached.
        """
        return bool(self._database.query(_HOLDER, (session_id,)))

    def aliased(self, alias: str, idle_seconds: float) -> str | None:
        """Return the id of the session with an alias; None without one.

        Args:
            alias: The alias.
            idle_seconds: A session that nothing happened in for longer is not found.

        Raises:
            SessionError: The database cannot be reached.
        """
        found = self._database.query(_ALIASED, (alias, idle_seconds))
        return found[0][0] if found else None

    def ids(self) -> list[str]:
        """List the ids of all sessions, in order.

        Raises:
            SessionError: The database cannot be reached.
        """
        return sorted(one for one, *_ in self._database.query(_LIST))

    def list(self, *, check: bool = False) -> list[SessionSummary]:  # noqa: ARG002
        """Describe every session from its row alone, in any order.

        Args:
            check: Without effect: events are checked when a session is read.

        Raises:
            SessionError: The database cannot be reached.
        """
        return [self._summary(*found) for found in self._database.query(_LIST)]

    def remove(self, session_id: str) -> None:
        """Delete a session.

        Raises:
            SessionError: Another process uses it, or the database cannot be reached.
        """
        hold, _ = self._acquired(session_id)
        self._database.query(_REMOVE, (session_id, hold.owner))

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._database.close()

    def _summary(
        self, session_id: str, texts: str, turns: int, title: str | None, first: str, changed: float
    ) -> SessionSummary:
        try:
            facts = SessionFacts.of(json.loads(texts), session_id)
        except (SessionError, ValueError, AttributeError):
            problem = f"session `{session_id}` in {self.name} is damaged: its metadata is missing"
            return SessionSummary(id=session_id, changed=changed, problem=problem)
        return SessionSummary(
            id=session_id,
            title=first if title is None else title,
            created=facts.created,
            changed=changed,
            cwd=facts.cwd,
            parent=facts.parent,
            turns=turns,
            root=None if facts.brought is None else facts.brought.root,
        )

    def _acquired(self, session_id: str) -> tuple[Hold, Columns]:
        """Take the lease of a session, as soon as no other process has it.

        Raises:
            SessionError: There is no such session, another process has it for too long, or the
                database cannot be reached.
        """
        owner, dead = new_owner(), ""
        end, pause = monotonic() + self._wait_seconds, _MIN_PAUSE
        while True:
            values = (owner, self._lease_seconds, session_id, owner, dead)
            for fence, *columns in self._database.query(_ACQUIRE, values):
                held = Columns._make(columns)
                head = held.head
                hold = Hold(
                    session_id=session_id, owner=owner, fence=fence, queued=head, written=head
                )
                return hold, held
            holder = self._database.query(_HOLDER, (session_id,))
            if not holder:
                raise SessionError(f"there is no session `{session_id}` in `{self.name}`")
            found, left = holder[0]
            if found and is_dead(found) and dead != found:
                dead = found  # its process ended without letting go
            elif found and monotonic() >= end:
                raise self._in_use(session_id, found, left or 0.0)
            else:
                sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)

    def _released(self, hold: Hold) -> None:
        self._lease.writer.stop_renewing(hold)
        self._database.query(_RELEASE, (hold.session_id, hold.owner))

    def _in_use(self, session_id: str, owner: str, left: float) -> SessionInUseError:
        machine, pid, *_ = (*owner.split(" "), "?", "?")
        seconds = max(1, ceil(left))
        error = SessionInUseError(
            f"session `{session_id}` is in use by process {pid} on {machine.partition('/')[0]}",
            hint=f"end it there, try again in {seconds} s in case it stopped, or go on"
            f" from a copy: `fast-agent session fork {session_id}`",
        )
        error.retry_after = seconds
        return error
