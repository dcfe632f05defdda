"""The database of durable runs: one SQLite file a batch, with every answered step.

A run belongs to one process at a time. Each time a process takes it, its fence grows, and a step is
written only under the fence it was begun with: a process that comes back from the dead writes
nothing.
"""

from __future__ import annotations

import sqlite3
import time
from asyncio import get_running_loop, sleep
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from fast_agent.engine.run_rows import (
    BEGUN,
    CANCELLED,
    DONE,
    FAILED,
    BatchSpending,
    NewRun,
    RunRow,
    StepRow,
)
from fast_agent.errors import RunError, os_reason
from fast_agent.messages.json_text import parse_json, write_json
from fast_agent.steps.steps import Key
from fast_agent.text.safe_file import sync_to_disk

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from fast_agent.engine.engine import RunState
    from fast_agent.steps.steps import Kind
    from fast_agent.text.json_value import JsonValue

VERSION: Final = 1
"""The form of the tables."""

_APPLICATION: Final = 0x46415255
_SCHEMA: Final = """
CREATE TABLE fact(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE run(
  id TEXT PRIMARY KEY, batch TEXT, item INT, key TEXT, edition TEXT, agent TEXT, input TEXT,
  state TEXT, wanted TEXT, owner TEXT, fence INT DEFAULT 0, attempt INT DEFAULT 0, output TEXT,
  error TEXT, used TEXT, cost REAL, began REAL, ended REAL) WITHOUT ROWID;
CREATE UNIQUE INDEX once ON run(batch, key);
CREATE INDEX next ON run(batch, item) WHERE state = 'queued';
CREATE TABLE step(
  run TEXT, turn TEXT, kind TEXT, name TEXT, number INT, asked TEXT, state INT, gave TEXT,
  used TEXT, fence INT, at REAL, began REAL, tries INT DEFAULT 1,
  PRIMARY KEY(run, turn, kind, name, number)) WITHOUT ROWID;
CREATE TABLE part(digest TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
_RUN_COLUMNS: Final = (
    "id, item, key, edition, agent, input, state, fence, attempt, output, error, used, cost,"
    " began, ended"
)
_WRITE_STEP: Final = (
    "INSERT INTO step SELECT ?,?,?,?,?,?,?,?,?,?,?,?,1"
    " WHERE (SELECT fence FROM run WHERE id=?)=?"
    " ON CONFLICT DO UPDATE SET state=excluded.state, gave=excluded.gave,"
    " used=excluded.used, fence=excluded.fence, at=excluded.at,"
    f" tries=tries+(excluded.state={BEGUN})"
)

_TICK_SECONDS: Final = 1e-6
"""How far apart steps are at least while the clock is behind what was written."""

IN_MEMORY: Final = Path(":memory:")
"""The path of a store without a file."""


class RunStore:
    """The runs and steps of one database.

    All methods are synchronous and short: a step costs less here than the switch to a thread.
    What an event loop writes in one round is one transaction, which ends with the round or with
    `flush`. Without a loop each statement is one.

    Args:
        path: The file, or `IN_MEMORY`.
        batch: The name of its batch.

    Attributes:
        failure: Why some of what was written is lost; nothing more is written then. None for none.
        only: The ids of the runs that may be taken; None for all.

    Raises:
        RunError: It cannot be opened, or is of another version.
    """

    def __init__(self, path: Path, batch: str) -> None:
        self.path = path
        self.batch = batch
        self.only: frozenset[str] | None = None
        self._known_parts: set[str] = set()
        self._is_open = True
        self._latest: float | None = None
        self._loop: AbstractEventLoop | None = None
        self._is_in_round = False
        self.failure: StoreError | None = None
        with self._errors():
            self._connection = connection = sqlite3.connect(
                path, isolation_level=None, timeout=30, check_same_thread=False
            )
            if path != IN_MEMORY:
                path.chmod(0o600)
            connection.execute("PRAGMA journal_mode=WAL")
            # A killed process loses nothing with NORMAL; `sync` is for a machine that stops.
            connection.execute("PRAGMA synchronous=NORMAL")
            self._prepare()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";\n"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id={_APPLICATION}")
                connection.execute(f"PRAGMA user_version={VERSION}")
            elif version != VERSION:
                raise RunError(
                    f"the runs in `{self.path}` have format {version}, and this version reads"
                    f" {VERSION}",
                    hint="update fast-agent",
                )
        finally:
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close the database; safe to call twice."""
        if self._is_open:
            self._is_open = False
            with suppress(StoreError):
                self.flush()
            self._connection.close()

    def flush(self) -> None:
        """Write everything to the file, so that it outlasts this process.

        Raises:
            RunError: It cannot be written.
        """
        self.check()
        if self._is_in_round:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                raise self._failed(error) from error
            self._is_in_round = False

    def _end_round(self) -> None:
        if self._is_open:
            with suppress(StoreError):  # what is written next raises it
                self.flush()

    def _write(self, statement: str, values: Sequence[object]) -> sqlite3.Cursor:
        """Execute a statement in the transaction of this round of the event loop.

        Raises:
            RunError: It cannot be written, or something before it was lost.
        """
        self.check()
        try:
            self._join_round()
            return self._connection.execute(statement, values)
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def _join_round(self) -> None:
        try:
            loop = get_running_loop()
        except RuntimeError:
            loop = None
        if self._is_in_round:
            if loop is self._loop:
                return
            self.flush()  # that loop ended within its round
        self._loop = loop
        if loop is not None:
            self._connection.execute("BEGIN IMMEDIATE")
            self._is_in_round = True
            loop.call_soon(self._end_round)

    def _failed(self, error: sqlite3.DatabaseError) -> StoreError:
        """Return an error in words; it stays where it took with it what was written before."""
        said = self._store_error(error)
        if self._is_in_round:
            self.failure = said
            with suppress(sqlite3.DatabaseError):
                self._connection.execute("ROLLBACK")
        return said

    def sync(self) -> None:
        """Write everything to the disk itself, so that it outlasts a power failure.

        Raises:
            RunError: It cannot be written.
        """
        self.flush()
        with self._errors(), suppress(FileNotFoundError):
            sync_to_disk(self.path.with_name(f"{self.path.name}-wal"))

    async def barrier(self) -> None:
        """Wait until what was written outlasts this process: until the loop's next round.

        Raises:
            RunError: It cannot be written.
        """
        if self._is_in_round:
            await sleep(0)  # the end of the round was scheduled before
            self.check()

    async def shared(self) -> None:
        """Wait for nothing: no other process continues while this one lives."""

    def check(self) -> None:
        """Check that nothing that was written is lost.

        Raises:
            RunError: Some of it is.
        """
        if self.failure is not None:
            raise self.failure

    def facts(self) -> dict[str, str]:
        """Return what is known of the batch as a whole."""
        with self._errors():
            return dict(self._connection.execute("SELECT name, value FROM fact"))

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Keep facts of the batch as a whole."""
        with self._errors():
            self._connection.executemany("INSERT OR REPLACE INTO fact VALUES(?,?)", facts.items())

    def queue(self, runs: Iterable[NewRun]) -> None:
        """Make these the runs of the batch; those known by their key keep their state.

        A run whose message is another one now is queued again. Runs that are not among these are
        kept, but not run.
        """
        batch = self.batch
        with self._errors(), self._transaction() as connection:
            connection.execute("UPDATE run SET item=-1 WHERE batch=?", (batch,))
            connection.executemany(
                "INSERT INTO run(id, batch, item, key, agent, input, state)"
                " VALUES(?,?,?,?,?,?,'queued') ON CONFLICT(batch, key) DO UPDATE SET"
                " item=excluded.item, agent=excluded.agent, input=excluded.input,"
                " state=CASE WHEN input=excluded.input AND agent=excluded.agent THEN state"
                " ELSE 'queued' END",
                ((_run_id(batch, run.key), batch, *run) for run in runs),
            )

    def add(self, run: RunRow) -> None:
        """Add a run that this process began."""
        self._write(
            "INSERT INTO run(id, batch, item, key, agent, input, state, fence, attempt, began)"
            " VALUES(?,?,?,?,?,?,?,?,?,?)",
            (run.id, self.batch, run.item, run.key, run.agent, run.input, run.state, run.fence,
             run.attempt, self._next_time()),
        )  # fmt: skip

    def delete_run(self, run_id: str) -> None:
        """Delete a run with its steps."""
        self._write("DELETE FROM step WHERE run=?", (run_id,))
        self._write("DELETE FROM run WHERE id=?", (run_id,))

    def recover(self) -> int:
        """Queue again the runs of processes that are gone; the caller alone may run any.

        Returns:
            How many had begun.
        """
        with self._errors():
            return self._connection.execute(
                "UPDATE run SET state='queued', owner=NULL"
                " WHERE batch=? AND state IN ('running', 'waiting')",
                (self.batch,),
            ).rowcount

    def take(self, owner: str, edition: str | None = None) -> RunRow | None:
        """Take the next queued run, the first of the batch.

        Args:
            owner: The process.
            edition: The cards that a run starts with; one that started before keeps its own.

        Returns:
            The run, or None where none is queued.
        """
        only = "" if self.only is None else " AND id IN (SELECT value FROM json_each(?))"
        values = () if self.only is None else (write_json(sorted(self.only)),)
        row = self._write(
            "UPDATE run SET state='running', owner=?, fence=fence+1,"
            " attempt=attempt+1, began=coalesce(began, ?), edition=coalesce(edition, ?)"
            " WHERE id=(SELECT id FROM run WHERE batch=? AND state='queued' AND item>=0"
            f"{only} ORDER BY item LIMIT 1) RETURNING {_RUN_COLUMNS}",
            (owner, self._next_time(), edition, self.batch, *values),
        ).fetchone()
        return None if row is None else RunRow(*row)

    def end(
        self,
        run: RunRow,
        state: RunState,
        *,
        output: JsonValue = None,
        error: JsonValue = None,
        used: JsonValue = None,
        cost: float | None = None,
    ) -> None:
        """Write how a run ended, or that it is queued again; nothing where another process has it.

        Raises:
            RunError: It cannot be written.
        """
        ended = None if state in {"queued", "running", "waiting"} else self._next_time()
        self._write(
            "UPDATE run SET state=?, output=?, error=?, used=?, cost=?, ended=?, owner=NULL"
            " WHERE id=? AND fence=?",
            (
                state,
                None if output is None else write_json(output),
                None if error is None else write_json(error),
                None if used is None else write_json(used),
                cost,
                ended,
                run.id,
                run.fence,
            ),
        )

    def requeue(self, states: Iterable[RunState], *, ids: Iterable[str] | None = None) -> int:
        """Queue runs again that are in one of the states; failed ones forget what failed.

        Returns:
            How many there were.
        """
        wanted = set(states)
        chosen = None if ids is None else set(ids)
        found = [
            run.id
            for run in self.runs()
            if run.state in wanted and (chosen is None or run.id in chosen)
        ]
        for run_id in found:
            self.forget_steps(run_id, _last_failures(self.steps(run_id)))
            with self._errors():
                self._connection.execute(
                    "UPDATE run SET state='queued', wanted=NULL, error=NULL, ended=NULL WHERE id=?",
                    (run_id,),
                )
        return len(found)

    def cancel(self, run_id: str, *, at_once: bool) -> bool:
        """Cancel a run, or ask the process that runs it to.

        Args:
            run_id: Its id.
            at_once: Whether no process runs it.

        Returns:
            Whether it had not ended.
        """
        stopped = "state IN ('queued', 'running', 'waiting')" if at_once else "state='queued'"
        with self._errors():
            done = self._connection.execute(
                "UPDATE run SET state='cancelled', fence=fence+1, owner=NULL, ended=?"
                f" WHERE id=? AND {stopped}",
                (self._next_time(), run_id),
            ).rowcount
            if not done:
                done = self._connection.execute(
                    "UPDATE run SET wanted='cancelled' WHERE id=? AND state IN"
                    " ('running', 'waiting')",
                    (run_id,),
                ).rowcount
        return bool(done)

    def to_be_cancelled(self) -> list[str]:
        """Return the ids of the runs under way that are to be cancelled."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT id FROM run WHERE wanted='cancelled' AND state='running'"
            ).fetchall()
        return [run_id for (run_id,) in rows]

    def counts(self) -> dict[RunState, int]:
        """Count the runs by their state."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT state, count(*) FROM run WHERE batch=? AND item>=0 GROUP BY state",
                (self.batch,),
            )
            return {cast("RunState", state): count for state, count in rows}

    def open_editions(self) -> dict[str, int]:
        """Count the runs that began and have not ended, by the edition of their cards."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT edition, count(*) FROM run WHERE batch=? AND item>=0 AND edition NOTNULL"
                " AND state IN ('queued', 'running', 'waiting') GROUP BY edition",
                (self.batch,),
            )
            return dict(rows.fetchall())

    def forget_edition(self, run_id: str) -> None:
        """Allow a run to continue with the cards of the process that takes it."""
        with self._errors():
            self._connection.execute("UPDATE run SET edition=NULL WHERE id=?", (run_id,))

    def runs(self, *, state: RunState | None = None) -> Iterator[RunRow]:
        """Return the runs in the order of the batch."""
        where, values = "batch=? AND item>=0", [self.batch]
        if state is not None:
            where, values = f"{where} AND state=?", [*values, state]
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {_RUN_COLUMNS} FROM run WHERE {where} ORDER BY item", values
            )
            for row in rows:
                yield RunRow(*row)

    def run(self, run_id: str) -> RunRow | None:
        """Return a run, or None where there is none of that id."""
        with self._errors():
            row = self._connection.execute(
                f"SELECT {_RUN_COLUMNS} FROM run WHERE id=?", (run_id,)
            ).fetchone()
        return None if row is None else RunRow(*row)

    def runs_like(self, prefix: str) -> list[RunRow]:
        """Return the runs whose id starts with a prefix, in the order of the batch."""
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {_RUN_COLUMNS} FROM run WHERE substr(id, 1, ?)=? AND item>=0"
                " ORDER BY item",
                (len(prefix), prefix),
            ).fetchall()
        return [RunRow(*row) for row in rows]

    def last_change(self) -> float:
        """Return when something was last written, in seconds since 1970; 0 for never."""
        with self._errors():
            (at,) = self._connection.execute(
                "SELECT max(coalesce((SELECT max(at) FROM step), 0),"
                " coalesce((SELECT max(coalesce(ended, began)) FROM run), 0))"
            ).fetchone()
        return float(at)

    def steps(self, run_id: str) -> list[StepRow]:
        """Return the steps of a run, in the order they began."""
        with self._errors():
            rows = self._connection.execute(
                "SELECT turn, kind, name, number, asked, state, gave, used, began, at, tries"
                " FROM step WHERE run=? ORDER BY began, at",
                (run_id,),
            ).fetchall()
        return [
            StepRow(Key(turn, cast("Kind", kind), name, number), *rest)
            for turn, kind, name, number, *rest in rows
        ]

    def write_step(
        self,
        run: RunRow,
        key: Key,
        asked: str,
        state: int,
        gave: str | None = None,
        used: str | None = None,
    ) -> None:
        """Write a step, where this process still has the run.

        Raises:
            RunError: Another process took the run, or it cannot be written.
        """
        now = self._next_time()
        written = self._write(
            _WRITE_STEP,
            (run.id, *key, asked, state, gave, used, run.fence, now, now, run.id, run.fence),
        ).rowcount
        if not written:
            raise StoreError(f"another process took over run `{run.id}`")

    def _next_time(self) -> float:
        """Return the time in seconds since 1970, later than anything written before.

        Steps are in the order of their times, also where the clock goes back between two lives.
        """
        if self._latest is None:
            self._latest = self.last_change()
        now = time.time()
        self._latest = now if now > self._latest else self._latest + _TICK_SECONDS
        return self._latest

    def forget_steps(self, run_id: str, keys: Iterable[Key]) -> None:
        """Delete steps, so that they are asked again."""
        with self._errors():
            self._connection.executemany(
                "DELETE FROM step WHERE run=? AND turn=? AND kind=? AND name=? AND number=?",
                [(run_id, *key) for key in keys],
            )

    def store_part(self, digest: str, value: JsonValue) -> None:
        """Keep a piece of questions and answers, once."""
        if digest in self._known_parts:
            return
        self._write("INSERT OR IGNORE INTO part VALUES(?,?)", (digest, write_json(value)))
        self._known_parts.add(digest)

    def part(self, digest: str) -> JsonValue:
        """Return a piece.

        Raises:
            RunError: There is none of that digest.
        """
        with self._errors():
            row = self._connection.execute(
                "SELECT value FROM part WHERE digest=?", (digest,)
            ).fetchone()
        if row is None:
            raise StoreError(f"the runs in `{self.path}` are missing the part `{digest}`")
        return parse_json(row[0])

    @property
    def parts(self) -> Mapping[str, JsonValue]:
        """All pieces, each read when it is asked for."""
        return _Parts(self)

    def totals(self) -> tuple[int, int]:
        """Count model requests: those answered, and those asked again."""
        with self._errors():
            return self._connection.execute(
                "SELECT coalesce(sum(state=1), 0), coalesce(sum(tries-1), 0)"
                " FROM step WHERE kind='model'"
            ).fetchone()

    def spent(self) -> BatchSpending:
        """Sum up what all answered model requests used."""
        return self._spent("step WHERE kind='model' AND used IS NOT NULL")

    def spent_by_runs(self) -> BatchSpending:
        """Sum up what all ended runs used, where their steps are kept by another engine."""
        return self._spent("run WHERE used IS NOT NULL")

    def _spent(self, rows: str) -> BatchSpending:
        with self._errors():
            found = self._connection.execute(
                "SELECT coalesce(sum(cost), 0), coalesce(sum(tokens), 0),"
                " coalesce(max(cost), 0), coalesce(max(tokens), 0), coalesce(sum(unpriced), 0)"
                " FROM (SELECT coalesce(json_extract(used,'$.nanodollars'), 0) AS cost,"
                " coalesce(json_extract(used,'$.input_tokens'), 0)"
                " + coalesce(json_extract(used,'$.output_tokens'), 0) AS tokens,"
                " coalesce(json_extract(used,'$.requests'), 0)"
                f" - coalesce(json_extract(used,'$.priced'), 0) AS unpriced FROM {rows})"
            ).fetchone()
        return BatchSpending(*map(int, found))

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        self.flush()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Translate errors of the file into words."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._store_error(error) from error

    def _store_error(self, error: sqlite3.DatabaseError | OSError) -> StoreError:
        if isinstance(error, OSError):
            reason = os_reason(error)
        elif error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            return FullDiskError(
                f"the disk of `{self.path}` is full",
                hint="free some space, then run the same command again to resume",
            )
        else:
            reason = str(error)
        return StoreError(f"the runs in `{self.path}` cannot be used: {reason}")


def new_run(run_id: str, agent: str, message: str) -> RunRow:
    """Return a run that starts now, and is not kept yet.

    Args:
        run_id: Its id.
        agent: The agent its message goes to.
        message: The message, as JSON.
    """
    return RunRow(
        run_id, 0, run_id, None, agent, message, "running", 1, 1, None, None, None, None, None, None
    )


def _run_id(batch: str, key: str) -> str:
    return f"{batch}-{sha256(key.encode()).hexdigest()[:12]}"


def _last_failures(steps: Iterable[StepRow]) -> list[Key]:
    """Return the steps that ended a run: failed or cancelled, and not reported to a model."""
    rows = list(steps)
    models_answered = [row for row in rows if row.state == DONE and row.key.kind == "model"]
    return [
        row.key
        for row in rows
        if row.state in {FAILED, CANCELLED}
        and not any(
            row.key.turn.startswith(later.key.turn) and later.began >= row.at
            for later in models_answered
        )
    ]


class _Parts(Mapping[str, "JsonValue"]):
    """The pieces of a store as a mapping."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def __getitem__(self, digest: str) -> JsonValue:
        try:
            return self._store.part(digest)
        except RunError as error:
            raise KeyError(digest) from error

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class StoreError(RunError):
    """The runs cannot be read or written; what was written before stays."""


class FullDiskError(StoreError):
    """The disk is full: the runs stop, and nothing is lost."""

    status = 75
