"""Worker threads for synchronous functions, so that one that waits stops nobody else.

The threads of anyio and of the standard library are not used here for two reasons. They are waited
for when the program ends, so that a function that was given up on would hold it; and a call through
them takes longer, which a turn of a fast model notices.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

DEFAULT_LIMIT = 40
IDLE_SECONDS = 10.0


class _Job:
    __slots__ = ("_context", "_loop", "_work", "abandoned", "future", "started")

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[object] = self._loop.create_future()
        self.started = False
        self.abandoned = False

    def run(self) -> Callable[[], None]:
        """Do the work; what is returned reports its outcome."""
        try:
            return partial(self._report, self._context.run(self._work), None)
        except BaseException as error:  # noqa: BLE001 (carried to the caller, who raises it)
            return partial(self._report, None, error)

    def _report(self, value: object, error: BaseException | None) -> None:
        tell = partial(self._settle, value, error)
        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            # The loop was closed while an abandoned function ran on: nobody waits for it.
            if not self._loop.is_closed():
                raise

    def _settle(self, value: object, error: BaseException | None) -> None:
        if self.future.done():
            return
        if isinstance(error, StopIteration):
            # A future cannot carry it.
            error = RuntimeError("the function raised StopIteration")
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class WorkerThreads:
    """A pool that grows as it is needed and shrinks when it is idle.

    A cancelled call is abandoned: its function runs to its end unheard, and does not count towards
    the limit. The threads do not keep the program from ending.

    Args:
        limit: Most functions that run at once; further ones wait their turn.
        idle_seconds: How long a thread with nothing to do stays.
    """

    __slots__ = ("_abandoned", "_idle_seconds", "_jobs", "_limit", "_lock", "_spare", "_threads")

    def __init__(self, limit: int = DEFAULT_LIMIT, idle_seconds: float = IDLE_SECONDS) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._abandoned = 0
        # Threads that wait for a job, less the jobs that wait for a thread.
        self._spare = 0

    @property
    def threads(self) -> int:
        """How many threads there are, those with abandoned functions included."""
        return self._threads

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread, within a copy of the caller's context variables.

        Args:
            work: The function.

        Returns:
            What it returned.

        Raises:
            BaseException: What it raised.
        """
        job = _Job(work)
        with self._lock:
            self._spare -= 1
            self._jobs.put(job)
            self._grow()
        try:
            return cast("T", await job.future)
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            job.abandoned = True
            if job.started:
                self._abandoned += 1
                self._grow()

    def _grow(self) -> None:
        if self._spare < 0 and self._threads - self._abandoned < self._limit:
            Thread(target=self._serve, name="fast-agent function", daemon=True).start()
            self._threads += 1
            self._spare += 1

    def _serve(self) -> None:
        while self._serve_one():
            pass

    def _serve_one(self) -> bool:
        job = self._next()
        if job is None:
            return False
        with self._lock:
            job.started = not job.abandoned
        report = job.run() if job.started else None
        # Spare before the caller hears of it, so that its next call finds this thread.
        with self._lock:
            self._spare += 1
            if job.started and job.abandoned:
                self._abandoned -= 1
            job.started = False
        if report is not None:
            report()
        return True

    def _next(self) -> _Job | None:
        while True:
            try:
                return self._jobs.get(timeout=self._idle_seconds)
            except Empty:
                with self._lock:
                    # Not spare: a job was put in the queue a moment ago, and this thread is its.
                    if self._spare > 0:
                        self._spare -= 1
                        self._threads -= 1
                        return None
