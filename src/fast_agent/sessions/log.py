"""Event log: what a session is written to and read from, wherever it is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.sessions.facts import SessionFacts, SessionSummary, short_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from fast_agent.errors import SessionError
    from fast_agent.messages.message import Message
    from fast_agent.sessions.event import Logged, Row
    from fast_agent.sessions.integrity import Damage, Inspection

SESSION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The form of a session's id."""


class StepRecords(Protocol):
    """Keeps the steps of a session's turns that are under way, for the next server of it.

    Its methods wait for the database.
    """

    def read_steps(self) -> dict[str, str]:
        """Return all records by their names.

        Raises:
            SessionError: The database cannot be reached.
        """
        ...

    def put_steps(self, records: Mapping[str, str | None]) -> None:
        """Write records over those of the same names; None deletes one.

        Raises:
            SessionError: The session was taken over, or the database cannot be reached.
        """
        ...


class EventLog(Protocol):
    """The open log of one session; every method but `barrier` may block on a disk or a network.

    Attributes:
        redact: Hides secrets in what is written; None hides none.
    """

    redact: Callable[[str], str] | None

    @property
    def place(self) -> str:
        """Where the log is, as messages name it."""
        ...

    @property
    def steps(self) -> Path | StepRecords:
        """Where the steps of turns that are under way are kept: a file, or a database."""
        ...

    @property
    def is_due(self) -> bool:
        """Whether the next end of a turn is to be written with `append_durably`."""
        ...

    @property
    def is_long(self) -> bool:
        """Whether so much was written that `append_durably` is due within a turn too."""
        ...

    @property
    def facts(self) -> dict[str, str]:
        """What is known of the session without its events.

        Raises:
            SessionError: It is damaged.
        """
        ...

    def read_facts(self) -> dict[str, str]:
        """Read the facts, damaged or not."""
        ...

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Write facts, all or none, over those of the same keys.

        Raises:
            SessionError: They cannot be written.
        """
        ...

    def append(self, *rows: Row) -> None:
        """Write events, or queue them to be written in order, all or none.

        They are safe from the end of the process after `barrier`; a log that does not queue makes
        them safe at once.

        Raises:
            SessionError: They cannot be written, or earlier ones could not.
        """
        ...

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what was appended.

        Raises:
            SessionError: Some of it cannot be written.
        """
        ...

    def append_durably(self, *rows: Row) -> None:
        """Write events so that a loss of power cannot lose them or those before them; blocks.

        Raises:
            SessionError: They cannot be written.
        """
        ...

    def append_all(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Write events with their times in seconds since the epoch, all or none; blocks.

        Raises:
            SessionError: They cannot be written.
        """
        ...

    def rows(self, last: int | None = None) -> Iterator[Logged]:
        """Read every event with its number, in order, up to number `last`.

        Raises:
            SessionError: The log is damaged; this is known at the end.
        """
        ...

    def times(self, last: int | None = None) -> dict[int, float]:
        """Read when each event happened, by its number, in seconds since the epoch.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def rewinds(self, last: int | None = None) -> list[tuple[int, int]]:
        """Read, for each rewind in order, the event it went back to and its own number.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def title(self) -> str | None:
        """Read the title set last.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def root_turns(self) -> list[int]:
        """Read the numbers of the events that began the turns nothing else started.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def first_message(self, seq: int) -> Message:
        """Read the message a turn began with, by the number of the event.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def changed(self) -> float | None:
        """Read when the last event happened, in seconds since the epoch; None without events.

        Raises:
            SessionError: The log is damaged.
        """
        ...

    def inspect(self) -> Inspection:
        """Check each event separately; this takes long in a long session.

        Raises:
            SessionError: The log cannot be read at all.
        """
        ...

    def damage_error(self, damage: Damage | None = None) -> SessionError:
        """Make the error that names the damaged events; None inspects the log for them."""
        ...

    def index_error(self) -> SessionError:
        """Make the error that says that an index is damaged, and no event."""
        ...

    def release(self) -> None:
        """Allow other processes to write the log until `acquire`, if it can be shared; blocks.

        Raises:
            SessionError: Something appended earlier could not be written.
        """
        ...

    def acquire(self) -> bool:
        """Hold a released log again; blocks.

        Returns:
            Whether it is as it was; False if another process wrote it, and it is to be read again.

        Raises:
            SessionError: Another process holds it, or it is gone.
        """
        ...

    def close(self) -> None:
        """Close the log, so that another process may write it; safe to call twice."""
        ...


class EventLogs(Protocol):
    """Where the logs of sessions are kept."""

    @property
    def is_shared(self) -> bool:
        """Whether processes on other machines write them too, so that logs are to be released."""
        ...

    def create(self, facts: Mapping[str, str]) -> EventLog:
        """Make the log of a new session and open it for writing.

        Args:
            facts: What is to be known of the session without its events; `id` among them.

        Raises:
            SessionError: It cannot be made.
        """
        ...

    def open(self, session_id: str) -> EventLog:
        """Open a log for writing; nothing else can until it is closed.

        Raises:
            SessionError: It is missing, in use, damaged, or of a newer version.
        """
        ...

    def read(self, session_id: str) -> EventLog:
        """Open a log for reading; another process may be writing it.

        Raises:
            SessionError: It is missing, damaged, or of a newer version.
        """
        ...

    def has(self, session_id: str) -> bool:
        """Whether there is a session of this id."""
        ...

    def aliased(self, alias: str, idle_seconds: float) -> str | None:
        """Return the id of the session with an alias among its facts; None without one.

        Args:
            alias: The alias.
            idle_seconds: A session that nothing happened in for longer is not found.

        Raises:
            SessionError: The sessions cannot be read.
        """
        ...

    def ids(self) -> list[str]:
        """List the ids of all sessions, in order."""
        ...

    def list(self, *, check: bool = False) -> list[SessionSummary]:
        """Describe every session, in any order; damaged ones too.

        Args:
            check: Read every event of each to find damage.
        """
        ...

    def remove(self, session_id: str) -> None:
        """Delete a session.

        Raises:
            SessionError: It is in use, or cannot be deleted.
        """
        ...


def summary_of(log: EventLog) -> SessionSummary:
    """Summarize a session by single events of its log, without reading all of them.

    Raises:
        SessionError: One of them is damaged.
    """
    facts = SessionFacts.of(log.facts, log.place)
    rewinds = log.rewinds()
    root_turns = [
        seq for seq in log.root_turns() if not any(kept < seq < end for kept, end in rewinds)
    ]
    title = log.title()
    if title is None and root_turns:
        title = short_title(log.first_message(root_turns[0]).text)
    return SessionSummary(
        id=facts.id,
        title=title or "",
        created=facts.created,
        changed=log.changed() or facts.created,
        cwd=facts.cwd,
        parent=facts.parent,
        turns=len(root_turns),
        root=None if facts.brought is None else facts.brought.root,
    )
