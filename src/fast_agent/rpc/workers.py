"""Workers: tasks that do one job after another, since to begin a task costs more than a job."""

from __future__ import annotations

from asyncio import CancelledError, get_running_loop
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

_MOST_IDLE: Final = 8

Job: TypeAlias = "Callable[[], Awaitable[None]]"


class Workers:
    """Does jobs beside each other, each as if in a task of its own.

    Args:
        tasks: Where the tasks run.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._idle: list[Future[Job | None]] = []
        self._ending = False

    def do(self, job: Job) -> None:
        """Begin a job soon; it must not raise."""
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(job)
                return
        self._tasks.start_soon(self._work, job)

    def end(self) -> None:
        """Let every task end once it has nothing to do."""
        self._ending = True
        for waiting in self._idle:
            if not waiting.done():
                waiting.set_result(None)
        self._idle.clear()

    async def _work(self, job: Job | None) -> None:
        clean = copy_context()
        while job is not None:
            await job()
            # What a job leaves in its context is not for the next one to see.
            if self._ending or len(self._idle) >= _MOST_IDLE or copy_context() != clean:
                return
            job = await self._next()

    async def _next(self) -> Job | None:
        waiting: Future[Job | None] = get_running_loop().create_future()
        self._idle.append(waiting)
        try:
            return await waiting
        except CancelledError:
            job = None if waiting.cancelled() else waiting.result()
            if job is not None:  # it was given just now, and hears itself that it is cancelled
                await job()
            raise
