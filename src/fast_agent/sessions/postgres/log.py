"""PostgreSQL log: the events of one session in a database."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from fast_agent.errors import SessionError
from fast_agent.sessions.event import END, REPLACED, REWOUND, TITLED, TURN, Row, hide
from fast_agent.sessions.facts import short_title
from fast_agent.sessions.integrity import Inspection, chained_sum, is_whole, last_number, summed
from fast_agent.sessions.message_text import read
from fast_agent.sessions.postgres.database import is_lost
from fast_agent.sessions.postgres.writer import Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fast_agent.messages.message import Message
    from fast_agent.sessions.event import Logged
    from fast_agent.sessions.integrity import Damage
    from fast_agent.sessions.postgres.database import Database
    from fast_agent.sessions.postgres.writer import Hold, Writer

_LAST = 2**62
_EVENTS = """
SELECT seq, kind, number, body, at, sum FROM fast_agent_event
WHERE session = %s AND seq <= %s ORDER BY seq"""
_EVENT = """
SELECT seq, kind, number, body, at, sum FROM fast_agent_event WHERE session = %s AND seq = %s"""
_TOPS = "SELECT seq FROM fast_agent_event WHERE session = %s AND top ORDER BY seq"
_REWINDS = """
SELECT number, seq FROM fast_agent_event
WHERE session = %s AND kind = 'rewound' AND seq <= %s ORDER BY seq"""
_TITLE = """
SELECT seq FROM fast_agent_event WHERE session = %s AND kind = 'titled' ORDER BY seq DESC LIMIT 1"""
_COLUMNS = "SELECT facts, head FROM fast_agent_session WHERE id = %s"
_SET_FACTS = """
UPDATE fast_agent_session SET facts = %s WHERE id = %s AND owner = %s AND fence = %s
RETURNING id"""

_STEPS = "SELECT name, body FROM fast_agent_step WHERE session = %s"
_PUT_STEPS = """
WITH held AS (SELECT id FROM fast_agent_session WHERE id = %s AND owner = %s AND fence = %s),
gone AS (DELETE FROM fast_agent_step
    WHERE session = %s AND name = ANY(%s::text[]) AND EXISTS (SELECT FROM held)),
put AS (INSERT INTO fast_agent_step (session, name, body)
    SELECT %s, n.name, n.body FROM unnest(%s::text[], %s::bytea[]) AS n(name, body), held
    ON CONFLICT (session, name) DO UPDATE SET body = excluded.body)
SELECT id FROM held"""
_PAUSE_SECONDS = 0.1


class Columns(NamedTuple):
    """What the row of a session holds of its events.

    Args:
        head: The number of the last event.
        sum: Its checksum.
        turns: How many turns nothing else started, without those that were rewound.
        title: The title given last, or None.
        first: The start of the first message; empty without one.
    """

    head: int = 0
    sum: int = 0
    turns: int = 0
    title: str | None = None
    first: str = ""


class PostgresLog:
    """The open log of one session in a database.

    Args:
        database: The database.
        session_id: The session.
        now: The clock, in seconds since the epoch.

    Attributes:
        redact: Hides secrets in what is written; None hides none.
    """

    def __init__(self, database: Database, session_id: str, now: Callable[[], float]) -> None:
        self._database = database
        self._id = session_id
        self._now = now
        self._lock = Lock()
        self._lease: Lease | None = None
        self._hold: Hold | None = None
        self._columns = Columns()
        self._under_way = set[str]()
        self._lost = set[str]()
        self.redact: Callable[[str], str] | None = None

    @property
    def place(self) -> str:
        """The session and its database, as messages name it."""
        return f"{self._id} in {self._database.name}"

    @property
    def steps(self) -> PostgresLog:
        """The log itself: the steps of turns that are under way are in a table of the database."""
        return self

    @property
    def is_due(self) -> bool:
        """Return False: `barrier` waits for the disk of the database already."""
        return False

    @property
    def is_long(self) -> bool:
        """Return False: the database cleans up on its own."""
        return False

    @property
    def facts(self) -> dict[str, str]:
        """What is known of the session without its events.

        Raises:
            SessionError: It is gone, or the database cannot be reached.
        """
        return self.read_facts()

    def read_facts(self) -> dict[str, str]:
        """Read the facts."""
        ((facts, _),) = self._database.query(_COLUMNS, (self._id,)) or self._gone()
        found: dict[str, str] = json.loads(facts)
        return found

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Write facts over those of the same keys.

        Raises:
            SessionError: They cannot be written.
        """
        hold = self._held()
        text = json.dumps({**self.read_facts(), **facts})
        values = (text, self._id, hold.owner, hold.fence)
        if not self._database.query(_SET_FACTS, values):
            raise self._taken_over()

    def append(self, *rows: Row) -> None:
        """Queue events, to be written in order.

        Raises:
            SessionError: Earlier ones could not be written.
        """
        at = self._now()
        self._put([(at, row) for row in rows])

    async def barrier(self) -> None:
        """Wait until all that was appended is on the disk of the database.

        Raises:
            SessionError: Some of it cannot be written.
        """
        hold, lease = self._hold, self._lease
        if hold is None or lease is None:
            return
        if hold.is_pending:
            loop = asyncio.get_running_loop()
            written: asyncio.Future[None] = loop.create_future()

            def reach(problem: SessionError | None) -> None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_reach, written, problem)

            lease.writer.when_written(hold, reach)
            await written
        elif hold.problem is not None:
            raise hold.problem

    def append_durably(self, *rows: Row) -> None:
        """Write events, and wait until they are on the disk of the database.

        Raises:
            SessionError: They cannot be written.
        """
        self.append(*rows)
        self._flush()

    def append_all(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Write events with their times in seconds since the epoch, all or none.

        Raises:
            SessionError: They cannot be written.
        """
        self._put(list(rows))
        self._flush()

    def _put(self, rows: list[tuple[float, Row]]) -> None:
        with self._lock:
            hold = self._held()
            self._check(hold, [row for _, row in rows])
            before, columns, events = self._columns.head, self._columns, list[Any]()
            for at, row in rows:
                shown = hide(row, self.redact)
                _, number, total, _ = summed((shown,), at, columns.head, columns.sum)
                columns = self._counted(columns._replace(head=number, sum=total), shown)
                top = shown.kind == TURN and shown.parent is None
                events.append((number, at, shown.kind, top, shown.number, total, _body(shown)))
            if not events or self._lease is None:
                return
            listed = (columns.turns, columns.title, columns.first, rows[-1][0])
            head = columns.head, columns.sum
            self._lease.writer.put(Write(hold, before, head, listed, events))
            self._columns = columns

    def _check(self, hold: Hold, rows: Sequence[Row]) -> None:
        """Begin anew where what was queued before is lost.

        With a turn that nothing else started, or with all that an agent remembers, which is written
        before its next turn where some of that is lost.

        Raises:
            SessionError: Nothing can be written yet, or events are of a turn that was under way
                then: what it said before may be lost.
        """
        if hold.problem is not None and self._lease is not None:
            first = rows[0] if rows else None
            begins = first is not None and (
                first.kind == REPLACED or (first.kind == TURN and first.parent is None)
            )
            columns = self._lease.writer.restart_after_loss(hold) if begins else None
            if columns is None:
                raise hold.problem
            self._columns = Columns(*columns)
            self._lost |= self._under_way
            self._under_way.clear()
        for row in rows:
            if row.turn in self._lost:
                raise SessionError(f"session `{self.place}`: the start of this turn is lost")
            if row.kind == TURN and row.turn is not None:
                self._under_way.add(row.turn)
            elif row.kind == END and row.turn is not None:
                self._under_way.discard(row.turn)

    def _counted(self, columns: Columns, row: Row) -> Columns:
        """Return the columns of a listing after an event."""
        if row.kind == TURN and row.parent is None:
            if not columns.turns:
                columns = columns._replace(first=_text(short_title(_message(row).text)))
            return columns._replace(turns=columns.turns + 1)
        if row.kind == TITLED:
            return columns._replace(title=_text(row.data or ""))
        if row.kind == REWOUND:
            kept = row.number or 0
            gaps = [*self.rewinds(), (kept, columns.head)]
            turns = sum(
                not any(low < top < high for low, high in gaps) for top in self.root_turns()
            )
            return columns._replace(turns=turns, first=columns.first if turns else "")
        return columns

    def rows(self, last: int | None = None) -> Iterator[Logged]:
        """Read every event with its number, in order, up to number `last`.

        Raises:
            SessionError: The session is damaged, or the database cannot be reached.
        """
        self._flush()
        if self._hold is not None and not self._columns.head:
            return
        found: list[Logged] = []
        written = 0
        for seq, kind, number, body, _, checksum in self._read(_EVENTS, _end(last)):
            try:
                turn, agent, parent, flag, form, data = json.loads(body)
            except ValueError as error:
                raise self.damage_error() from error
            found.append((seq, kind, turn, agent, parent, number, flag, form, data))
            written = checksum
        there = found[-1][0] if found else 0
        total = chained_sum(found, 0) if found else 0
        if total != written & 0xFFFFFFFF or there < (self._head() if last is None else last):
            raise self.damage_error()
        yield from found

    def times(self, last: int | None = None) -> dict[int, float]:
        """Read when each event happened, by its number, in seconds since the epoch.

        Raises:
            SessionError: The session is damaged, or the database cannot be reached.
        """
        self._flush()
        times: dict[int, float] = {}
        for found in self._read(_EVENTS, _end(last)):
            *fields, at, written = _fields(found)
            if not is_whole(found[0], Row._make(fields), at, written):
                raise self.damage_error()
            times[found[0]] = at
        return times

    def rewinds(self, last: int | None = None) -> list[tuple[int, int]]:
        """Read, for each rewind in order, the event it went back to and its own number.

        Raises:
            SessionError: The database cannot be reached.
        """
        if self._is_new():
            return []
        return [(number, seq) for number, seq in self._read(_REWINDS, _end(last))]

    def title(self) -> str | None:
        """Read the title given last.

        Raises:
            SessionError: The session is damaged, or the database cannot be reached.
        """
        found = [] if self._is_new() else self._read(_TITLE)
        return self._checked(found[0][0])[0].data or "" if found else None

    def root_turns(self) -> list[int]:
        """Read the numbers of the events that began the turns nothing else started.

        Raises:
            SessionError: The database cannot be reached.
        """
        return [] if self._is_new() else [seq for (seq,) in self._read(_TOPS)]

    def first_message(self, seq: int) -> Message:
        """Read the message a turn began with, by the number of the event.

        Raises:
            SessionError: The session is damaged, or the database cannot be reached.
        """
        return _message(self._checked(seq)[0])

    def changed(self) -> float | None:
        """Read when the last event happened, in seconds since the epoch; None without events.

        Raises:
            SessionError: The session is damaged, or the database cannot be reached.
        """
        head = self._head()
        return self._checked(head)[1] if head else None

    def inspect(self) -> Inspection:
        """Check each event separately.

        Raises:
            SessionError: The database cannot be reached.
        """
        self._flush()
        found = {one[0]: one for one in self._read(_EVENTS, _LAST)}

        def fetch(number: int) -> tuple[Any, ...] | None:
            return _fields(found[number]) if number in found else None

        return Inspection(fetch, max(self._head(), last_number(found)))

    def damage_error(self, damage: Damage | None = None) -> SessionError:
        """Make the error that names the damaged events; None inspects the log for them."""
        damage = damage or self.inspect().damage
        text = str(damage) if damage.events else "its end is damaged"
        return SessionError(f"session `{self.place}`: {text}", hint=self._salvage_hint)

    def index_error(self) -> SessionError:
        """Make the error that says that an index is damaged, and no event."""
        msg = f"session `{self.place}`: an index is damaged"
        return SessionError(msg, hint=self._salvage_hint)

    @property
    def _salvage_hint(self) -> str:
        return f"`fast-agent session salvage {self._id}` starts a session with what is intact"

    def read_steps(self) -> dict[str, str]:
        """Return the records of turns that are under way, by their names.

        Raises:
            SessionError: The database cannot be reached.
        """
        return {name: bytes(body).decode() for name, body in self._read(_STEPS)}

    def put_steps(self, records: Mapping[str, str | None]) -> None:
        """Write records over those of the same names, for as long as the lease lasts.

        Args:
            records: The records; None deletes one.

        Raises:
            SessionError: Another process took the session over, or the database stays away.
        """
        lease, hold = self._lease, self._held()
        if lease is None:
            return
        kept = {name: text.encode() for name, text in records.items() if text is not None}
        gone = [name for name, text in records.items() if text is None]
        values = (
            *(self._id, hold.owner, hold.fence),
            *(self._id, gone, self._id, list(kept), list(kept.values())),
        )
        end = monotonic() + lease.writer.lease_seconds
        while True:
            try:
                found = self._database.query(_PUT_STEPS, values)
            except SessionError as error:
                cause = error.__cause__
                if not (isinstance(cause, psycopg.Error) and is_lost(cause)) or monotonic() > end:
                    raise
                sleep(_PAUSE_SECONDS)
            else:
                if not found:
                    raise self._taken_over()
                return

    def hold(self, lease: Lease, hold: Hold, columns: Columns) -> None:
        """Write the session from now on, under a lease that was taken.

        Args:
            lease: Acquires and releases leases.
            hold: The session.
            columns: What its row holds of its events.
        """
        self._lease, self._hold, self._columns = lease, hold, columns
        lease.writer.hold(hold)

    def release(self) -> None:
        """Allow other processes to write the session until `acquire`; waits for the database.

        Raises:
            SessionError: Something appended earlier could not be written.
        """
        hold, self._hold = self._hold, None
        if hold is not None and self._lease is not None:
            try:
                self._lease.writer.flush(hold)
            finally:
                self._lease.release(hold)

    def acquire(self) -> bool:
        """Hold a released session again; waits for the database.

        Returns:
            Whether it is as it was; False if another process wrote it.

        Raises:
            SessionError: Another process holds it, or it is gone.
        """
        if self._hold is not None or self._lease is None:
            return True
        hold, columns = self._lease.acquire(self._id)
        before = self._columns
        self.hold(self._lease, hold, columns)
        return columns.head == before.head

    def close(self) -> None:
        """Write what was queued and let other processes write the session; safe to call twice."""
        with suppress(SessionError):  # it was raised where something was recorded or awaited
            self.release()
        self._lease = None

    def _held(self) -> Hold:
        if self._hold is None:
            msg = f"session `{self.place}` is not open for writing"
            raise SessionError(msg)
        return self._hold

    def _flush(self) -> None:
        if self._hold is not None and self._lease is not None:
            self._lease.writer.flush(self._hold)

    def _is_new(self) -> bool:
        """Whether it has no events; otherwise all that was queued is written after this."""
        if self._hold is not None and not self._columns.head:
            return True
        self._flush()
        return False

    def _head(self) -> int:
        if self._hold is not None:
            return self._columns.head
        ((_, head),) = self._database.query(_COLUMNS, (self._id,)) or self._gone()
        return int(head)

    def _read(self, statement: Any, *values: object) -> list[Any]:
        return self._database.query(statement, (self._id, *values))

    def _checked(self, number: int) -> tuple[Row, float]:
        """Read one event and its time.

        Raises:
            SessionError: It is damaged.
        """
        self._flush()
        found = self._read(_EVENT, number)
        if not found:
            raise self.index_error()
        *fields, at, written = _fields(found[0])
        row = Row._make(fields)
        if not is_whole(number, row, at, written):
            raise self.damage_error()
        return row, at

    def _gone(self) -> list[Any]:
        raise SessionError(f"session `{self.place}` no longer exists")

    def _taken_over(self) -> SessionError:
        return SessionError(f"session `{self.place}` cannot be written: it was taken over")


class Lease:
    """Acquires and releases leases; see `PostgresLogs`."""

    __slots__ = ("acquire", "release", "writer")

    def __init__(
        self,
        writer: Writer,
        acquire: Callable[[str], tuple[Hold, Columns]],
        release: Callable[[Hold], None],
    ) -> None:
        self.writer = writer
        self.acquire = acquire
        self.release = release


def _reach(written: asyncio.Future[None], problem: SessionError | None) -> None:
    if written.done():
        return
    if problem is None:
        written.set_result(None)
    else:
        written.set_exception(problem)


def _end(last: int | None) -> int:
    return _LAST if last is None else last


def _body(row: Row) -> bytes:
    fields = (row.turn, row.agent, row.parent, row.flag, row.form, row.data)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(
        errors="surrogatepass"
    )


def _fields(found: Any) -> tuple[Any, ...]:
    """Return the fields of a row, its time and its checksum, as the table holds them."""
    _, kind, number, body, at, written = found
    turn, agent, parent, flag, form, data = json.loads(body)
    return kind, turn, agent, parent, number, flag, form, data, at, written


def _message(row: Row) -> Message:
    return read(row.form, row.data or "")


def _text(text: str) -> str:
    """Return a string as a column can hold it."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()
