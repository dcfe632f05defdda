"""Generations: the live agents that served conversations use, by version of the cards.

A drain is the time between the word to stop and the end, in which calls under way are answered.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import anyio

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup, TaskStatus

    from fast_agent.agent_app import AgentApp

    Start = Callable[[], AbstractAsyncContextManager[AgentApp]]

log = logging.getLogger(__name__)


class Generation:
    """Live agents, and how many conversations use them.

    Args:
        app: The agents.
    """

    __slots__ = ("__weakref__", "_unused", "app", "newest", "users")

    def __init__(self, app: AgentApp) -> None:
        self.app = app
        self.users = 0
        self.newest = True
        self._unused = anyio.Event()

    def take(self) -> Generation:
        """Use it; every use is followed by a `leave`."""
        self.users += 1
        return self

    def leave(self) -> None:
        """Release it; it ends when no user is left and there is a newer one."""
        self.users -= 1
        self._settle()

    def retire(self) -> None:
        """Offer it to no new conversation."""
        self.newest = False
        self._settle()

    async def run(self) -> None:
        """Wait until it is of no use any more."""
        await self._unused.wait()

    def _settle(self) -> None:
        if not self.users and not self.newest:
            self._unused.set()


class Generations:
    """The newest generation, and older ones that conversations began with.

    Args:
        tasks: Where older generations wait for their end.
        start: Makes the agents live: `FastAgent.run`.
        version: The version of the cards now.
        follow: Whether conversations change to new cards at their next request; else each keeps
            the cards it began with.

    Attributes:
        running: How many generations are live.
    """

    def __init__(
        self, tasks: TaskGroup, start: Start, version: Callable[[], int], *, follow: bool
    ) -> None:
        self._tasks = tasks
        self._start = start
        self._version = version
        self._follow = follow
        self._lock = anyio.Lock()
        self._newest: Generation | None = None
        self._version_tried = -1
        self.running = 0
        self._ended = anyio.Event()

    @property
    def current(self) -> Generation:
        """The newest generation there is, without checking the cards.

        Raises:
            RuntimeError: None was started.
        """
        if self._newest is None:
            raise RuntimeError("no generation was started")
        return self._newest

    async def newest(self) -> Generation:
        """Return the agents of the current cards; if they cannot be made, the last ones."""
        if self._newest is not None and self._version() == self._version_tried:
            return self._newest
        async with self._lock:
            now = self._version()
            if self._newest is None:
                self._newest = await self._begin()
            elif now != self._version_tried:
                await self._renew(self._newest)
            self._version_tried = now
            return self._newest

    async def aclose(self) -> None:
        """End the newest generation; every conversation has ended. Waits until none runs."""
        if self._newest is not None:
            self._newest.retire()
        while self.running:
            self._ended = anyio.Event()
            await self._ended.wait()

    async def _renew(self, before: Generation) -> None:
        try:
            if self._follow:
                await before.app.refresh()
            elif before.app.version != self._version():
                self._newest = await self._begin()
                before.retire()
        except FastAgentError as error:
            log.warning(
                "AgentCards not reloaded; the previous version keeps running: %s", error.message
            )

    async def _begin(self) -> Generation:
        generation: Generation = await self._tasks.start(self._run)
        return generation

    async def _run(self, *, task_status: TaskStatus[Generation]) -> None:
        started = False
        self.running += 1
        try:
            async with self._start() as app:
                generation = Generation(app)
                started = True
                task_status.started(generation)
                await generation.run()
        except FastAgentError as error:
            if not started:
                raise
            log.warning("agents could not be closed cleanly: %s", error.message)
        finally:
            self.running -= 1
            self._ended.set()


_POLL_SECONDS = 0.02
CANCEL_GRACE_SECONDS = 3.0
"""How long cancelled calls may take to end, and answers to be written, in seconds."""


class Drain:
    """Waits for running calls, and cancels those that take too long; accepts no new ones.

    Args:
        busy: Whether a call is under way.
        call_off: Calls off those that are.
        seconds: How long they may continue.
    """

    def __init__(
        self, busy: Callable[[], bool], cancel_all: Callable[[], None], seconds: float
    ) -> None:
        self._busy = busy
        self._call_off = cancel_all
        self._seconds = seconds
        self._end = 0.0
        self._over = False
        self.begun = False

    def begin(self, then: Callable[[float], None]) -> None:
        """Start draining; for a signal handler, in the thread of the event loop.

        Args:
            then: Called when nothing is under way any more, or does not end, with the seconds that
                are left for anything but calls. A second `begin` ends all calls at once.
        """
        if self._over:
            then(CANCEL_GRACE_SECONDS)
            return
        loop = asyncio.get_running_loop()
        if self.begun:
            self._end = loop.time()
            return
        self.begun = True
        self._end = loop.time() + self._seconds
        called_off = False

        def poll() -> None:
            nonlocal called_off
            left = self._end - loop.time()
            if not self._busy() or left <= -CANCEL_GRACE_SECONDS:
                self._over = True
                then(max(left, CANCEL_GRACE_SECONDS))
                return
            if left <= 0 and not called_off:
                called_off = True
                self._call_off()
            loop.call_later(_POLL_SECONDS, poll)

        loop.call_soon_threadsafe(poll)
