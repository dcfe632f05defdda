"""Batch: many runs of one agent, several at a time, each durable."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING, Final, Protocol

from anyio import CancelScope, create_task_group, sleep

from fast_agent.engine.run_steps import DriftError, DurableSteps, PausedError
from fast_agent.engine.run_store import StoreError
from fast_agent.errors import FastAgentError, RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fast_agent.engine.engine import RunAnswer
    from fast_agent.engine.model_requests import ModelRequests
    from fast_agent.engine.run_rows import RunRow
    from fast_agent.engine.run_store import RunStore
    from fast_agent.steps.parts import StepRedactor
    from fast_agent.steps.steps import Key, Steps
    from fast_agent.text.json_value import JsonValue

log = getLogger(__name__)

SETTLE_SECONDS: Final = 1.0
"""How often the runs are written to the disk itself, against a power failure."""


class Ask(Protocol):
    """Sends the message of a run to its agent, in a fresh conversation."""

    async def __call__(self, run: RunRow, steps: Steps, /) -> RunAnswer:
        """Answer the run.

        Raises:
            FastAgentError: The turn failed.
        """
        ...


@dataclass(slots=True)
class BatchCounts:
    """How far a batch is.

    Args:
        total: All runs.
        done: Runs that were answered.
        failed: Runs that failed.
        cancelled: Runs that were cancelled.
        running: Runs that are under way in this process.
    """

    total: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    running: int = 0

    @property
    def ended(self) -> int:
        """Runs that have a row in the results."""
        return self.done + self.failed + self.cancelled


class Batch:
    """Runs what is queued; to be used by one process at a time.

    Args:
        store: The runs.
        requests: Sends their model requests.
        redactor: What must not be written.
        ask: Answers one run.
        edition: Digest of the cards that new runs start with.
        concurrency: Most runs at a time.
        max_errors: Most failed runs; one more stops the batch. None never does.
        fault: Called at the boundaries of steps; for tests.

    Attributes:
        counts: How far it is.
        answered: How many steps were answered from the store.
    """

    def __init__(
        self,
        store: RunStore,
        requests: ModelRequests,
        redactor: StepRedactor,
        ask: Ask,
        *,
        edition: str,
        concurrency: int,
        max_errors: int | None = None,
        fault: Callable[[str, Key], None] | None = None,
    ) -> None:
        self._store = store
        self._requests = requests
        self._redactor = redactor
        self._ask = ask
        self._edition = edition
        self._concurrency = concurrency
        self._max_errors = max_errors
        self._fault = fault
        self._open: dict[str, DurableSteps] = {}
        self._stopped: FastAgentError | None = None
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        store.recover()
        self.counts = counts_of(store)
        self.answered = 0

    async def run(self) -> None:
        """Run until nothing is queued.

        Raises:
            PausedError: A limit or a quota stops the batch for now.
            StoreError: The runs cannot be written; the batch continues when they can.
            RunError: Too many runs failed.
        """
        async with create_task_group() as group:
            guard = CancelScope()
            group.start_soon(self._guard, guard)
            async with create_task_group() as workers:
                for _ in range(max(1, min(self._concurrency, self.counts.total))):
                    workers.start_soon(self._work)
            guard.cancel()
        self._store.sync()
        if self._stopped is not None:
            raise self._stopped

    async def _guard(self, scope: CancelScope) -> None:
        """Settle the disk now and then; when the process ends, stop all runs where they are."""
        try:
            with scope:
                while True:
                    await sleep(SETTLE_SECONDS)
                    with self._stops_if_not_written():
                        self._store.sync()
                        for run_id in self._store.to_be_cancelled():
                            if run_id in self._open:
                                self._open[run_id].cancel()
        finally:
            self._close_open()

    def _close_open(self) -> None:
        for steps in self._open.values():
            steps.close()

    def _stop(self, error: FastAgentError) -> None:
        self._stopped = self._stopped or error
        self._close_open()

    @contextmanager
    def _stops_if_not_written(self) -> Generator[None]:
        """Stop the batch where the store cannot be written, such as on a full disk.

        Raised in a worker, the error would come out of the task group wrapped.
        """
        try:
            yield
        except StoreError as error:
            self._stop(error)

    async def _work(self) -> None:
        while self._stopped is None:
            run = None
            with self._stops_if_not_written():
                run = self._store.take(self._owner, self._edition)
            if run is None:
                return
            steps = DurableSteps(self._store, run, self._redactor, self._requests, self._fault)
            self.counts.running += 1
            self._open[run.id] = steps
            try:
                await self._run(run, steps)
            finally:
                del self._open[run.id]
                self.counts.running -= 1
                self.answered += steps.answered

    async def _run(self, run: RunRow, steps: DurableSteps) -> None:
        """Answer one run, and write how it ended."""
        try:
            answer: RunAnswer | None = None
            with steps.scope:
                answer = await self._ask(run, steps)
            if answer is None:
                if steps.is_cancelled:
                    self._store.end(run, "cancelled")
                    self.counts.cancelled += 1
                    return
                raise steps.stopped or PausedError("the process stops")
            output = self._redactor.redacted(answer.output)
            self._store.end(run, "done", output=output, used=answer.used, cost=answer.cost)
            self.counts.done += 1
        except PausedError as error:
            # The others stop at their next request: what is under way is paid for.
            self._stopped = self._stopped or error
            with self._stops_if_not_written():  # `recover` queues a run that stays as it is
                self._store.end(run, "queued")
        except DriftError as error:
            self._fail(run, error)
        except StoreError as error:
            self._stop(error)
        except FastAgentError as error:
            self._fail(run, error)
        except Exception as error:  # the boundary of a run
            log.exception("run `%s` failed", run.id)
            self._fail(run, RunError(f"run `{run.id}` failed: {type(error).__name__}: {error}"))

    def _fail(self, run: RunRow, error: FastAgentError) -> None:
        redact = self._redactor.redact
        facts: dict[str, JsonValue] = {
            "kind": type(error).__name__,
            "message": redact(error.message),
        }
        if error.hint is not None:
            facts["hint"] = redact(error.hint)
        with self._stops_if_not_written():
            self._store.end(run, "failed", error=facts)
            self.counts.failed += 1
        if self._max_errors is not None and self.counts.failed > self._max_errors:
            error = TooManyErrors(
                f"{self.counts.failed} runs failed, and `--max-errors` allows {self._max_errors}",
                hint="read the error rows; `--retry-failed` runs them again",
            )
            self._stopped = self._stopped or error
            self._requests.stop(PausedError(error.message, hint=error.hint))


class TooManyErrors(RunError):  # noqa: N818 (a decision of the user, not a fault of the program)
    """More runs failed than the user allows."""


def counts_of(store: RunStore) -> BatchCounts:
    """Return how far the batch of a store is."""
    by_state = store.counts()
    return BatchCounts(
        total=sum(by_state.values()),
        done=by_state.get("done", 0),
        failed=by_state.get("failed", 0),
        cancelled=by_state.get("cancelled", 0),
        running=by_state.get("running", 0),
    )
