"""Session store: sessions are created, opened, listed, forked and deleted here.

Where their logs are is the matter of `EventLogs`: files in a home directory, or a database. The
methods block on it, and opening reads a session from its start; call them from a worker thread
where an event loop must keep running.
"""

from __future__ import annotations

import time
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.config.settings import DISK_SECONDS
from fast_agent.errors import SessionError
from fast_agent.sessions.event import Row, SessionTitled, row_of
from fast_agent.sessions.facts import SessionFacts, SessionSets
from fast_agent.sessions.integrity import whole_turns
from fast_agent.sessions.log import SESSION_ID, summary_of
from fast_agent.sessions.session import Session, end_of
from fast_agent.sessions.sqlite.files import SessionFiles
from fast_agent.sessions.state import state_of, without_rewound
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.sessions.facts import SessionSummary
    from fast_agent.sessions.integrity import Damage
    from fast_agent.sessions.log import EventLog, EventLogs, StepRecords
    from fast_agent.sessions.session import SetChange, TurnCarrier
    from fast_agent.sessions.state import SessionState
    from fast_agent.trust.found_set import Provenance


@frozen
class Salvage:
    """What could not be saved of a damaged session.

    Args:
        damage: The events that are damaged.
        turns: How many turns were left out for them.
    """

    damage: Damage
    turns: int


class SessionStore:
    """The sessions of a home directory or a database.

    Args:
        logs: Where their logs are. A path is a home directory with a SQLite file for each session;
            missing directories are made with the first session. A string is the address of a
            PostgreSQL database, with user and password.
        disk_seconds: How long a turn that ended in a file may stand in the system's memory alone,
            where a loss of power takes it, while others follow it; with 0 each is on the disk
            first, None is a second.
        lease_seconds: How long a process that stopped answering keeps a session in a database to
            itself; None is 30 seconds.
        wait_seconds: How long to wait for a session in a database that another process is using.
        now: The clock, in seconds since the epoch.
        token: Gives the random part of an id.
        redact: Hides secrets in what is written; None hides none.
        provenance: Returns the found sets of this run. None, for what runs no agents, neither
            remembers nor compares them.
        steps: Makes what keeps the steps of a session's turns, from the path of their file or their
            records in the database; None keeps none.
    """

    def __init__(
        self,
        logs: Path | str | EventLogs,
        *,
        disk_seconds: float | None = None,
        lease_seconds: float | None = None,
        wait_seconds: float = 0.0,
        now: Callable[[], float] = time.time,
        token: Callable[[], str] = lambda: urandom(4).hex(),
        redact: Callable[[str], str] | None = None,
        provenance: Callable[[], Provenance] | None = None,
        steps: Callable[[Path | StepRecords], TurnCarrier] | None = None,
    ) -> None:
        self._redact = redact
        self._carrier = steps or _no_carrier
        self._provenance = provenance
        if isinstance(logs, Path):
            seconds = DISK_SECONDS if disk_seconds is None else disk_seconds
            logs = SessionFiles(logs, now, seconds)
        elif isinstance(logs, str):
            from fast_agent.sessions.postgres import postgres_logs

            logs = postgres_logs(logs, now, lease_seconds=lease_seconds, wait_seconds=wait_seconds)
        self._logs: EventLogs = logs
        self._now = now
        self._token = token

    @property
    def is_shared(self) -> bool:
        """Whether other servers answer its sessions too, so that they are released after a turn."""
        return self._logs.is_shared

    def create(
        self,
        title: str | None = None,
        *,
        cwd: Path | None = None,
        parent: str | None = None,
        brought: SessionSets | None = None,
        alias: str | None = None,
    ) -> Session:
        """Start a session; the caller closes it.

        Args:
            title: Its title, or None.
            cwd: The directory it belongs to, or None.
            parent: The session it was forked from, or None.
            brought: The found sets it was talked with; None are those of this run.
            alias: Another name that `aliased` finds it by; hexadecimal digits. None for none.

        Raises:
            SessionError: It cannot be made.
        """
        now = self._now()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        facts = SessionFacts(
            id=f"{stamp}-{self._token()}",
            created=now,
            cwd="" if cwd is None else str(cwd),
            parent=parent,
            brought=brought or self._current_sets(parent),
        )
        texts = facts.texts()
        if alias is not None:
            texts["alias"] = alias
        session = self._session(self._logs.create(texts))
        if title is not None:
            session.rename(title)
        return session

    def open(self, session_id: str, *, agree: Callable[[SetChange], bool] | None = None) -> Session:
        """Open a session to continue it; the caller closes it.

        Args:
            session_id: Its id, or a prefix of it.
            agree: Asks the user whether to continue under another root, or with agents that may do
                more; None answers no.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be read.
            TrustError: It is to be resumed under another root, or by agents that may do more, and
                the user did not agree.
        """
        session = self.open_unasked(session_id)
        try:
            change = self.change(session)
            if change is not None and (agree is None or not agree(change)):
                raise change.refusal
            self.agreed(session)
        except BaseException:
            session.close()
            raise
        return session

    def aliased(self, alias: str, idle_seconds: float) -> str | None:
        """Return the id of the session with an alias; None without one.

        Args:
            alias: The alias.
            idle_seconds: A session that nothing happened in for longer is not found.

        Raises:
            SessionError: The sessions cannot be read.
        """
        return self._logs.aliased(alias, idle_seconds)

    def open_unasked(self, session_id: str) -> Session:
        """Open a session; the caller asks about its `change` before a message is sent.

        Args:
            session_id: Its id, or a prefix of it.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be read.
        """
        return self._session(self._logs.open(self.find(session_id)))

    def change(self, session: Session) -> SetChange | None:
        """Return what a user has to agree to before a session continues in this run."""
        return None if self._provenance is None else session.change(self._provenance())

    def agreed(self, session: Session) -> None:
        """Record that a session continues with the found sets of this run.

        Raises:
            SessionError: It cannot be written.
        """
        if self._provenance is not None:
            session.belong(self._provenance())

    def list(self, *, check: bool = False) -> list[SessionSummary]:
        """Describe every session, the one that changed last first; damaged ones too.

        Args:
            check: Look for damage in every event, which reads each session whole. Else it is shown
                where what is listed shows it.
        """
        found = self._logs.list(check=check)
        return sorted(found, key=lambda one: (one.changed, one.id), reverse=True)

    def latest(self, cwd: Path | None = None) -> str | None:
        """Return the id of the session that changed last; None if there is none.

        Args:
            cwd: Look only at those that began in this directory and belong to the root of this run;
                None checks all.
        """
        root = None if self._provenance is None else str(self._provenance().root)
        for one in self.list():
            is_of_root = root is None or one.root in {None, root}
            if one.problem is None and (cwd is None or (one.cwd == str(cwd) and is_of_root)):
                return one.id
        return None

    def _current_sets(self, parent: str | None) -> SessionSets | None:
        """Return the sets of this run, for a session that starts in it; a copy has its own."""
        if self._provenance is None or parent is not None:
            return None
        return SessionSets.now(self._provenance())

    def fork(
        self, session_id: str, at: int | str | None = None, *, title: str | None = None
    ) -> Session:
        """Start a session that continues from a point of another, which stays unchanged.

        The other may be in use. What was running at that point is closed as if cancelled.

        Args:
            session_id: The other session's id, or a prefix of it.
            at: The last turn taken over: its number, from 1, or its id; 0 takes over nothing, None
                everything.
            title: The title; None keeps that of the other.

        Raises:
            SessionError: There is no such session or turn, or the new one cannot be written.
        """
        source = self.find(session_id)
        log = self._logs.read(source)
        try:
            facts = SessionFacts.of(log.facts, log.place)
            state = state_of(log)
            last = None if at is None else end_of(state, at)
            times = log.times(last)
            living_rows = without_rewound(log.rows(last), log.rewinds())
            rows = [(times[row[0]], Row._make(row[1:])) for row in living_rows]
            title = log.title() if title is None else title
        finally:
            log.close()
        new = self.create(
            cwd=Path(facts.cwd) if facts.cwd else None, parent=source, brought=facts.brought
        )
        try:
            new.take_over(rows)
            if title is not None:
                new.rename(title)
        except BaseException:
            new.close()
            self.delete(new.id)
            raise
        return new

    def salvage(self, session_id: str) -> tuple[Session, Salvage]:
        """Start a session with the intact events of a damaged one, which stays unchanged.

        Turns that were under way when a damaged event was written are left out.

        Args:
            session_id: The damaged session's id, or a prefix of it.

        Returns:
            The new session, which the caller closes, and what could not be saved.

        Raises:
            SessionError: There is no such session, it cannot be read at all, or the new one cannot
                be written.
        """
        source = self.find(session_id)
        log = self._logs.read(source)
        try:
            inspection = log.inspect()
            rows, left_out = whole_turns(inspection)
            facts = log.read_facts()
            cwd = facts.get("cwd", "")
        finally:
            log.close()
        new = self.create(
            cwd=Path(cwd) if cwd else None, parent=source, brought=SessionSets.of(facts)
        )
        try:
            new.take_over(rows)
        except BaseException:
            new.close()
            self.delete(new.id)
            raise
        return new, Salvage(inspection.damage, left_out)

    def rename(self, session_id: str, title: str) -> None:
        """Set the title of a session.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be written.
        """
        log = self._logs.open(self.find(session_id))
        log.redact = self._redact
        try:
            log.append_durably(row_of(SessionTitled(title)))
        finally:
            log.close()

    def delete(self, session_id: str) -> None:
        """Delete a session, damaged ones too.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be deleted.
        """
        self._logs.remove(self.find(session_id))

    def read(self, session_id: str) -> tuple[SessionSummary, SessionState]:
        """Read a session without changing it; another process may be writing it.

        Raises:
            SessionError: There is none, or it cannot be read.
        """
        found = self.find(session_id)
        log = self._logs.read(found)
        try:
            return summary_of(log), state_of(log)
        finally:
            log.close()

    def find(self, session_id: str) -> str:
        """Return the whole id of a session.

        Args:
            session_id: Its id, or a prefix of it.

        Raises:
            SessionError: There is none, or there are several.
        """
        if SESSION_ID.fullmatch(session_id):
            if self._logs.has(session_id):
                return session_id
            matches = [one for one in self._logs.ids() if one.startswith(session_id)]
            if len(matches) == 1:
                return matches[0]
            if matches:
                listed = ", ".join(f"`{one}`" for one in matches[:5])
                raise SessionError(f"`{session_id}` may be several sessions: {listed}")
        near = closest(session_id, self._logs.ids())
        hint = did_you_mean(near, "`fast-agent session list` lists them")
        raise SessionError(f"there is no session `{session_id}`", hint=hint)

    def _session(self, log: EventLog) -> Session:
        log.redact = self._redact
        try:
            return Session(log, self._carrier(log.steps))
        except BaseException:
            log.close()
            raise


def _no_carrier(_: Path | StepRecords) -> None:
    """Return what carries the turns of a session whose store names no carrier."""
