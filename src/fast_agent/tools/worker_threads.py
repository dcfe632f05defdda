"""Worker threads for synchronous functions, so that one that waits stops no other.

The pools of anyio and of the standard library join their threads when the program ends, so that a
cancelled function that never returns would keep it from ending. These threads are daemons.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

DEFAULT_LIMIT = 40
IDLE_SECONDS = 10.0


class _Job:
    __slots__ = ("_context", "_error", "_value", "_work", "abandoned", "future", "started")

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._context = copy_context()
        self._value: object = None
        self._error: BaseException | None = None
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.started = False
        self.abandoned = False

    def run(self) -> None:
        """Do the work, and keep its outcome."""
        try:
            self._value = self._context.run(self._work)
        except StopIteration as error:
            # A coroutine cannot raise it.
            self._error = RuntimeError("the function raised StopIteration")
            self._error.__cause__ = error
        except BaseException as error:  # noqa: BLE001 (carried to the caller, who raises it)
            self._error = error

    def notify(self) -> None:
        """Notify the caller that it is done."""
        loop = self.future.get_loop()
        try:
            loop.call_soon_threadsafe(_settle, self.future)
        except RuntimeError:
            # The loop was closed while an abandoned function kept running: no caller waits for it.
            if not loop.is_closed():
                raise

    def outcome(self) -> object:
        """Return what the work returned, or raise what it raised."""
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            raise error
        finally:
            # It holds this frame, which would hold it.
            del error


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
            await job.future
        except BaseException:
            self._abandon(job)
            raise
        return cast("T", job.outcome())

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
        if job.started:
            job.run()
        # Spare before the caller is notified, so that its next call finds this thread.
        with self._lock:
            self._spare += 1
            if job.started and job.abandoned:
                self._abandoned -= 1
            job.started = False
        job.notify()
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
