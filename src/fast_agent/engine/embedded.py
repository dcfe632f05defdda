"""The runs of this machine: every batch is a SQLite file in one directory."""

from __future__ import annotations

import json
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

from anyio import sleep

from fast_agent.engine.engine import ENDED, RunEvent, RunFacts, RunFilter, StepFacts
from fast_agent.engine.run_rows import CANCELLED, DONE, FAILED
from fast_agent.engine.run_store import RunStore
from fast_agent.errors import RunError, os_reason
from fast_agent.recording.cassette import Cassette, Entry, Failure
from fast_agent.steps.steps import TURN_SEPARATOR, Key
from fast_agent.text.safe_file import FileLock
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fast_agent.engine.engine import StepState
    from fast_agent.engine.run_rows import RunRow, StepRow
    from fast_agent.text.json_value import JsonValue

POLL_SECONDS: Final = 0.2
"""How often a watched run is polled, in seconds."""

_STATES: Final[tuple[StepState, ...]] = ("begun", "done", "failed", "cancelled")
_DIGEST: Final = re.compile(r"[0-9a-f]{20}")
_NOT_EXPORTED: Final = frozenset({"time", "id"})
"""Kinds that a recording has no entry of."""


@contextmanager
def open_store(directory: Path, batch: str) -> Generator[RunStore]:
    """Open the runs of a batch.

    Args:
        directory: The directory of runs; it is made where it is missing.
        batch: The name of the batch.

    Raises:
        RunError: They cannot be opened, or are of another version.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise RunError(f"`{directory}` cannot be made: {os_reason(error)}") from error
    store = RunStore(directory / f"{batch}.sqlite", batch)
    try:
        yield store
    finally:
        store.close()


def lock_of(store: RunStore) -> FileLock:
    """Return the lock that the process holds which runs a batch."""
    return FileLock(store.path.with_suffix(".lock"))


class EmbeddedRuns:
    """The runs in a directory of this machine; see `Runs`.

    Args:
        directory: The directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def runs(self, wanted: RunFilter) -> AsyncIterator[RunFacts]:
        """Return runs, those of the newest batch first; see `Runs.runs`.

        Raises:
            RunError: A batch cannot be read; the runs of the others come first.
        """
        left = wanted.limit
        problem: RunError | None = None
        for batch in self.batches():
            if not (batch.startswith(wanted.name) or wanted.name.startswith(f"{batch}-")):
                continue
            try:
                with self.opened(batch) as store:
                    rows = store.runs_like(wanted.name)
            except RunError as error:
                problem = problem or error
                continue
            for row in rows:
                if wanted.states and row.state not in wanted.states:
                    continue
                if left is not None and left <= 0:
                    return
                left = None if left is None else left - 1
                yield _facts(batch, row)
        if problem is not None:
            raise problem

    async def find(self, run_id: str) -> RunFacts:
        """Return a run by a prefix of its id; see `Runs.find`."""
        found: list[RunFacts] = []
        async for facts in self.runs(RunFilter(run_id, limit=6)):
            if facts.id == run_id:
                return facts
            found.append(facts)
        if len(found) == 1:
            return found[0]
        if found and run_id:
            listed = ", ".join(f"`{one.id}`" for one in found[:5])
            raise RunError(f"`{run_id}` may be several runs: {listed}")
        known = [facts.id async for facts in self.runs(RunFilter(limit=1000))]
        near = closest(run_id, known)
        hint = did_you_mean(near, "`fast-agent runs list` lists them")
        raise RunError(f"there is no run `{run_id}`", hint=hint)

    async def steps(self, run_id: str) -> Sequence[StepFacts]:
        """Return the steps of a run; see `Runs.steps`."""
        with self._store_of(run_id) as store:
            return [_step_facts(row) for row in store.steps(run_id)]

    async def tail(self, run_id: str, after: float = 0.0) -> AsyncIterator[RunEvent]:
        """Return what happens in a run as it happens; see `Runs.tail`."""
        seen: dict[Key, tuple[int, int]] = {}
        with self._store_of(run_id) as store:
            while True:
                row = store.run(run_id)
                # The state first: a step written in between is in the next round.
                for step in sorted(store.steps(run_id), key=lambda one: one.at):
                    now = step.state, step.tries
                    if step.at > after and seen.get(step.key) != now:
                        seen[step.key] = now
                        yield RunEvent(step.at, step=_step_facts(step))
                if row is None or row.state in ENDED or not self._is_run(store):
                    yield RunEvent(time.time(), state="queued" if row is None else row.state)
                    return
                await sleep(POLL_SECONDS)

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run; see `Runs.cancel`."""
        with self._store_of(run_id) as store:
            lock = lock_of(store)
            is_free = lock.take()
            try:
                return store.cancel(run_id, at_once=is_free)
            finally:
                lock.release()

    async def export(self, run_id: str) -> Cassette:
        """Return a run as a recording, which `go --replay` reproduces."""
        with self._store_of(run_id) as store:
            row = store.run(run_id)
            facts = store.facts()
            cassette = Cassette(run_id, complete=row is not None and row.state in ENDED)
            for entry in _entries(store.steps(run_id), facts):
                cassette.entries[entry.key] = entry
                _add_parts(cassette.parts, store.parts, [entry.asked, entry.gave])
            return cassette

    async def prune(self, before: float) -> int:
        """Delete the batches whose runs all ended before a time, in seconds since 1970.

        Returns:
            How many runs were deleted.

        Raises:
            RunError: A batch cannot be read; what is old of the others is deleted.
        """
        deleted = 0
        problem: RunError | None = None
        for batch in self.batches():
            try:
                deleted += self._prune(batch, before)
            except RunError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return deleted

    def _prune(self, batch: str, before: float) -> int:
        with self.opened(batch) as store:
            lock = lock_of(store)
            rows = store.runs_like("")
            is_old = store.last_change() < before and all(row.state in ENDED for row in rows)
            if not is_old or not lock.take():
                return 0
            try:
                store.close()
                for path in self._directory.glob(f"{batch}.sqlite*"):
                    path.unlink(missing_ok=True)
                return len(rows)
            finally:
                lock.release()  # its file stays: a process may wait for this very one

    def batches(self) -> list[str]:
        """Return the names of the batches, the one that changed last first."""
        found = [(path.stat().st_mtime, path.stem) for path in self._directory.glob("*.sqlite")]
        return [name for _, name in sorted(found, reverse=True)]

    def opened(self, batch: str) -> AbstractContextManager[RunStore]:
        """Open the runs of a batch that is there."""
        return open_store(self._directory, batch)

    @contextmanager
    def _store_of(self, run_id: str) -> Generator[RunStore]:
        batch = run_id.rpartition("-")[0]
        if batch not in self.batches():
            raise RunError(f"there is no run `{run_id}`", hint="`fast-agent runs list` lists them")
        with self.opened(batch) as store:
            yield store

    def _is_run(self, store: RunStore) -> bool:
        """Whether a process runs the batch."""
        lock = lock_of(store)
        if lock.take():
            lock.release()
            return False
        return True


def _facts(batch: str, row: RunRow) -> RunFacts:
    return RunFacts(
        id=row.id,
        batch=batch,
        item=row.item,
        key=row.key,
        agent=row.agent,
        message=_value(row.input),
        state=row.state,
        attempt=row.attempt,
        edition=row.edition,
        output=_value(row.output),
        error=_value(row.error),
        used=_value(row.used),
        cost=row.cost,
        began=row.began,
        ended=row.ended,
    )


def _step_facts(row: StepRow) -> StepFacts:
    return StepFacts(
        key=row.key,
        state=_STATES[row.state],
        began=row.began,
        at=row.at,
        tries=row.tries,
        used=_value(row.used),
        asked=_value(row.asked),
        gave=_value(row.gave),
    )


def _value(text: str | None) -> JsonValue:
    return None if text is None else cast("JsonValue", json.loads(text))


def _entries(steps: Iterable[StepRow], facts: Mapping[str, str]) -> Iterator[Entry]:
    """Return the entries of a recording that is a run."""
    for name, value in facts.items():
        if name.startswith("fact:"):
            yield Entry(Key("", "fact", name.removeprefix("fact:"), 1), gave=value)
    rows = sorted(steps, key=lambda row: row.at)
    orders = [row for row in rows if row.key.kind == "order"]
    for row in sorted(orders, key=lambda row: int(row.gave or 0)):
        yield Entry(row.key)
    # A replay asks for nothing inside of a tool that has an answer.
    answered = [_inside(row.key) for row in rows if row.state in {DONE, FAILED}]
    silent = tuple(f"{one}{TURN_SEPARATOR}" for one in answered)
    for row in rows:
        key = row.key
        if key.kind == "order" or key.kind in _NOT_EXPORTED:
            continue
        if f"{key.turn}{TURN_SEPARATOR}".startswith(silent):
            continue
        if row.state == FAILED:
            kind, message, hint = json.loads(row.gave or "null")
            yield Entry(key, _value(row.asked), failure=Failure(kind, message, hint))
        elif row.state == DONE:
            yield Entry(key, _value(row.asked), _value(row.gave))
        elif row.state == CANCELLED or row.key.kind == "model":
            yield Entry(key, _value(row.asked), unfinished=True)


def _inside(key: Key) -> str:
    return f"{key.turn}{TURN_SEPARATOR}{key.kind} {key.name}.{key.number}"


def _add_parts(
    parts: dict[str, JsonValue], known: Mapping[str, JsonValue], values: Iterable[JsonValue]
) -> None:
    """Add the pieces that values name, and the pieces that those name."""
    left = list(values)
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, str) and value not in parts and _DIGEST.fullmatch(value):
            part = known.get(value)
            if part is not None:
                parts[value] = part
                left.append(part)
