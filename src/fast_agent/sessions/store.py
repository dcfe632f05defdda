"""Session store: the sessions of a home directory, each in a file of its own.

One file for each session keeps apart what could harm each other: a damaged file is one session
lost, writers of different sessions never wait for each other, and a session is deleted or copied
as a file is. A session is written by one process at a time, which holds the lock beside it; any
number may read it meanwhile.

The methods wait for files, and opening reads a session from its beginning; where an event loop must
go on meanwhile, call them from a worker thread.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from os import urandom
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.config.bounds import DISK_SECONDS
from fast_agent.errors import SessionError
from fast_agent.sessions.event import Titled
from fast_agent.sessions.integrity import whole_turns
from fast_agent.sessions.log import EventLog, remove_files
from fast_agent.sessions.row import Row, row_of
from fast_agent.sessions.session import Session, SessionFacts, SessionSets, end_of
from fast_agent.sessions.state import living, state_of
from fast_agent.text.file_lock import FileLock
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fast_agent.sessions.integrity import Damage
    from fast_agent.sessions.session import SetChange
    from fast_agent.sessions.state import SessionState
    from fast_agent.trust.found_set import Provenance

DIRECTORY: Final = "sessions"
"""Where the sessions are in the home directory."""

_SUFFIX = ".sqlite"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One line of a list of sessions.

    Args:
        id: Its id.
        title: Its title, else the beginning of its first message; empty without either.
        created: When it began, in seconds since the epoch.
        changed: When something last happened in it, in seconds since the epoch.
        cwd: The directory it began in; empty where it began in none.
        parent: The session it was forked from, or None.
        turns: How many turns it has.
        problem: Why it cannot be opened; None where it can.
        root: The root it belongs to; None where it is from before this was kept.
    """

    id: str
    title: str = ""
    created: float = 0.0
    changed: float = 0.0
    cwd: str = ""
    parent: str | None = None
    turns: int = 0
    problem: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Salvage:
    """What could not be saved of a damaged session.

    Args:
        damage: The events that are damaged.
        turns: How many turns were left out for them.
    """

    damage: Damage
    turns: int


class SessionStore:
    """The sessions of a home directory.

    Args:
        home: The home directory; what is missing is made when a session is.
        disk_seconds: How long a turn that ended may stand in the system's memory alone, where a
            loss of power takes it, while others follow it; with 0 each is on the disk first, None
            is a second.
        now: The clock, in seconds since the epoch.
        token: Gives the random part of an id.
        redact: Hides secrets in what is written; None hides none.
        provenance: Returns the found sets of this run. None, for what runs no agents, neither
            remembers nor compares them.
    """

    def __init__(
        self,
        home: Path,
        *,
        disk_seconds: float | None = None,
        now: Callable[[], float] = time.time,
        token: Callable[[], str] = lambda: urandom(4).hex(),
        redact: Callable[[str], str] | None = None,
        provenance: Callable[[], Provenance] | None = None,
    ) -> None:
        self._redact = redact
        self._provenance = provenance
        self._directory = home / DIRECTORY
        self._disk_seconds = DISK_SECONDS if disk_seconds is None else disk_seconds
        self._now = now
        self._token = token

    def create(
        self,
        title: str | None = None,
        *,
        cwd: Path | None = None,
        parent: str | None = None,
        brought: SessionSets | None = None,
    ) -> Session:
        """Begin a session; the caller closes it.

        Args:
            title: Its title, or None.
            cwd: The directory it belongs to, or None.
            parent: The session it was forked from, or None.
            brought: The found sets it was talked with; None are those of this run.

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
            brought=brought or self._brought(parent),
        )
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            msg = f"there can be no sessions in `{self._directory}`: {reason}"
            raise SessionError(msg) from error
        lock = self._locked(facts.id)
        try:
            path = self._path(facts.id)
            log = EventLog.create(path, facts.texts(), self._now, self._disk_seconds)
            log.redact = self._redact
        except BaseException:
            lock.release()
            self._lock_path(facts.id).unlink(missing_ok=True)
            raise
        session = self._session(log, lock)
        if title is not None:
            session.rename(title)
        return session

    def open(self, session_id: str, *, agree: Callable[[SetChange], bool] | None = None) -> Session:
        """Open a session to go on with it; the caller closes it.

        Args:
            session_id: Its id, or the beginning of it.
            agree: Asks the person whether to go on under another root, or with agents that may do
                more; None answers no.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be read.
            TrustError: It is to be resumed under another root, or by agents that may do more, and
                nobody agreed.
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

    def open_unasked(self, session_id: str) -> Session:
        """Open a session; the caller asks about its `change` before a message is sent.

        Args:
            session_id: Its id, or the beginning of it.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be read.
        """
        log, lock = self._opened(self.find(session_id))
        return self._session(log, lock)

    def change(self, session: Session) -> SetChange | None:
        """Return what a person has to agree to before a session goes on in this run."""
        return None if self._provenance is None else session.change(self._provenance())

    def agreed(self, session: Session) -> None:
        """Remember that a session goes on with the found sets of this run.

        Raises:
            SessionError: It cannot be written.
        """
        if self._provenance is not None:
            session.belong(self._provenance())

    def list(self, *, check: bool = False) -> list[SessionSummary]:
        """Describe every session, the one that changed last first; damaged ones too.

        Args:
            check: Look for damage in every event, which reads each session whole. Else it is told
                where what is listed shows it.
        """
        found = [self._summary(session_id, check=check) for session_id in self._ids()]
        return sorted(found, key=lambda one: (one.changed, one.id), reverse=True)

    def latest(self, cwd: Path | None = None) -> str | None:
        """Give the id of the session that changed last; None where there is none.

        Args:
            cwd: Look only at those that began in this directory and belong to the root of this run;
                None looks at all.
        """
        root = None if self._provenance is None else str(self._provenance().root)
        for one in self.list():
            is_of_root = root is None or one.root in {None, root}
            if one.problem is None and (cwd is None or (one.cwd == str(cwd) and is_of_root)):
                return one.id
        return None

    def _brought(self, parent: str | None) -> SessionSets | None:
        """Return the sets of this run, for a session that begins in it; a copy has its own."""
        if self._provenance is None or parent is not None:
            return None
        return SessionSets.now(self._provenance())

    def fork(
        self, session_id: str, at: int | str | None = None, *, title: str | None = None
    ) -> Session:
        """Begin a session that goes on from a point of another, which stays as it is.

        The other may be in use. What was running at that point is closed as if cancelled.

        Args:
            session_id: The other session's id, or the beginning of it.
            at: The last turn taken over: its number, from 1, or its id; 0 takes over nothing, None
                everything.
            title: The title; None keeps that of the other.

        Raises:
            SessionError: There is no such session or turn, or the new one cannot be written.
        """
        source = self.find(session_id)
        log = self._reading(source)
        try:
            facts = SessionFacts.of(log)
            state = state_of(log)
            last = None if at is None else end_of(state, at)
            times = log.times(last)
            living_rows = living(log.rows(last), log.rewinds())
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
        """Begin a session with what is whole of a damaged one, which stays as it is.

        Turns that were under way when a damaged event was written are left out.

        Args:
            session_id: The damaged session's id, or the beginning of it.

        Returns:
            The new session, which the caller closes, and what could not be saved.

        Raises:
            SessionError: There is no such session, it cannot be read at all, or the new one cannot
                be written.
        """
        source = self.find(session_id)
        log = self._reading(source)
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
        """Give a session a title.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be written.
        """
        log, lock = self._opened(self.find(session_id))
        try:
            log.append(row_of(Titled(title)))
        finally:
            log.close()
            lock.release()

    def delete(self, session_id: str) -> None:
        """Delete a session, damaged ones too.

        Raises:
            SessionError: There is none, another process has it open, or it cannot be deleted.
        """
        found = self.find(session_id)
        lock = self._locked(found)
        try:
            remove_files(self._path(found))
            # Who waits for this lock finds no session behind it.
            self._lock_path(found).unlink(missing_ok=True)
        finally:
            lock.release()

    def read(self, session_id: str) -> tuple[SessionSummary, SessionState]:
        """Read a session without changing it; another process may be writing it.

        Raises:
            SessionError: There is none, or it cannot be read.
        """
        found = self.find(session_id)
        log = self._reading(found)
        try:
            return self._summarized(log), state_of(log)
        finally:
            log.close()

    def find(self, session_id: str) -> str:
        """Give the whole id of a session.

        Args:
            session_id: Its id, or the beginning of it.

        Raises:
            SessionError: There is none, or there are several.
        """
        if _ID.fullmatch(session_id):
            if self._path(session_id).exists():
                return session_id
            matches = [one for one in self._ids() if one.startswith(session_id)]
            if len(matches) == 1:
                return matches[0]
            if matches:
                listed = ", ".join(f"`{one}`" for one in matches[:5])
                raise SessionError(f"`{session_id}` may be several sessions: {listed}")
        near = closest(session_id, list(self._ids()))
        hint = f"did you mean `{near}`?" if near else "`fast-agent session list` lists them"
        raise SessionError(f"there is no session `{session_id}`", hint=hint)

    def _ids(self) -> Iterator[str]:
        try:
            for path in sorted(self._directory.glob(f"*{_SUFFIX}")):
                if _ID.fullmatch(path.stem):
                    yield path.stem
        except OSError:
            return

    def _path(self, session_id: str) -> Path:
        return self._directory / f"{session_id}{_SUFFIX}"

    def _lock_path(self, session_id: str) -> Path:
        return self._directory / f"{session_id}.lock"

    def _locked(self, session_id: str) -> FileLock:
        lock = FileLock(self._lock_path(session_id))
        try:
            taken = lock.take()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SessionError(f"session `{session_id}` cannot be opened: {reason}") from error
        if not taken:
            raise SessionError(
                f"session `{session_id}` is in use by process {lock.holder() or '?'}",
                hint=f"end it there, or go on from a copy: `fast-agent session fork {session_id}`",
            )
        return lock

    def _opened(self, session_id: str) -> tuple[EventLog, FileLock]:
        lock = self._locked(session_id)
        try:
            log = EventLog.open(self._path(session_id), self._now, self._disk_seconds)
        except BaseException:
            lock.release()
            raise
        log.redact = self._redact
        return log, lock

    def _reading(self, session_id: str) -> EventLog:
        return EventLog.open(self._path(session_id), self._now, read_only=True)

    def _session(self, log: EventLog, lock: FileLock) -> Session:
        try:
            return Session(log, lock)
        except BaseException:
            log.close()
            lock.release()
            raise

    def _summary(self, session_id: str, *, check: bool) -> SessionSummary:
        try:
            log = self._reading(session_id)
            try:
                if check:
                    log.check()
                return replace(self._summarized(log), id=session_id)
            finally:
                log.close()
        except SessionError as error:
            try:
                changed = self._path(session_id).stat().st_mtime
            except OSError:
                changed = 0.0
            return SessionSummary(id=session_id, changed=changed, problem=error.message)

    def _summarized(self, log: EventLog) -> SessionSummary:
        facts = SessionFacts.of(log)
        rewinds = log.rewinds()
        tops = [seq for seq in log.tops() if not any(kept < seq < end for kept, end in rewinds)]
        title = log.title()
        if title is None and tops:
            text = " ".join(log.first_message(tops[0]).text.split())
            short = text[:_TITLE_LENGTH]
            title = short if short == text else f"{short.rstrip()}…"
        return SessionSummary(
            id=facts.id,
            title=title or "",
            created=facts.created,
            changed=log.changed() or facts.created,
            cwd=facts.cwd,
            parent=facts.parent,
            turns=len(tops),
            root=None if facts.brought is None else facts.brought.root,
        )
