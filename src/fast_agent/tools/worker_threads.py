"""Worker threads for synchronous functions, so that one that waits stops nobody else.

The threads of anyio and of the standard library are not used here for two reasons. They are waited
for when the program ends, so that a function that was given up on would hold it; and a call through
them takes longer, which a turn of a fast model notices.
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

MOMENT = 0.000_2
"""Seconds for which a function that was quick before is waited for.

It is about what a call costs that the loop has to be told of, so that waiting in vain costs no more
than twice of that, and waiting with success spares it.
"""


class Pace:
    """Whether a function is waited for a moment: it is, as long as its calls take no longer.

    After a call that took longer, some are not waited for: more each time, up to 15.
    """

    __slots__ = ("_left", "_passed")

    def __init__(self) -> None:
        self._passed = 0
        self._left = 0

    def waits(self) -> bool:
        """Whether the next call is waited for; asked once for each."""
        if self._left == 0:
            return True
        self._left -= 1
        return False

    def note(self, *, quick: bool) -> None:
        """Note how a call went that was waited for."""
        self._passed = 0 if quick else min(2 * self._passed + 1, 15)
        self._left = self._passed


class _Job:
    __slots__ = (
        "_context",
        "_error",
        "_value",
        "_work",
        "abandoned",
        "answered",
        "done",
        "future",
        "started",
    )

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._context = copy_context()
        self._value: object = None
        self._error: BaseException | None = None
        self.answered = Lock()
        self.answered.acquire()
        self.future: asyncio.Future[None] | None = None
        self.started = False
        self.done = False
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

    def tell(self) -> None:
        """Let the caller know that it is done."""
        if self.future is None:
            self.answered.release()
            return
        loop = self.future.get_loop()
        try:
            loop.call_soon_threadsafe(_settle, self.future)
        except RuntimeError:
            # The loop was closed while an abandoned function ran on: nobody waits for it.
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

    async def run(self, work: Callable[[], T], pace: Pace | None = None) -> T:
        """Run a function in a thread, within a copy of the caller's context variables.

        Args:
            work: The function.
            pace: How its calls went before. One that was quick is waited for a moment, in which
                the loop does nothing else; None waits for none.

        Returns:
            What it returned.

        Raises:
            BaseException: What it raised.
        """
        job = _Job(work)
        with self._lock:
            self._spare -= 1
            taken = self._spare >= 0
            self._jobs.put(job)
            self._grow()
        try:
            if not (taken and pace is not None and _is_quick(job, pace)):
                await self._told(job)
        except BaseException:
            self._abandon(job)
            raise
        return cast("T", job.outcome())

    async def _told(self, job: _Job) -> None:
        """Wait until the loop is told that a job is done."""
        with self._lock:
            if job.done:
                return
            job.future = asyncio.get_running_loop().create_future()
        await job.future

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
        # Spare before the caller hears of it, so that its next call finds this thread.
        with self._lock:
            self._spare += 1
            if job.started and job.abandoned:
                self._abandoned -= 1
            job.started = False
            job.done = True
        job.tell()
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


def _is_quick(job: _Job, pace: Pace) -> bool:
    """Wait a moment for a job, if its pace says so; say whether it is done."""
    if not pace.waits():
        return False
    quick = job.answered.acquire(timeout=MOMENT)
    pace.note(quick=quick)
    return quick
