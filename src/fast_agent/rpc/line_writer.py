"""Writes lines to a descriptor, in order and without blocking."""

from __future__ import annotations

import os
from asyncio import get_running_loop
from logging import getLogger
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

log = getLogger(__name__)

MAX_UNREAD_BYTES: Final = 64 << 20
"""Maximum size of what waits to be read; beyond it, the other side counts as gone."""

FULL_BYTES: Final = 1 << 20
"""From which size on the writer is full: what can wait should."""


class LineWriter:
    """Writes messages to a descriptor, one a line, without keeping anybody waiting.

    Args:
        descriptor: Where to; it is made non-blocking.
        lost: Called once when the other side does not read any more.
    """

    def __init__(self, descriptor: int, lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._queue: list[bytes] = []
        self._rest = memoryview(b"")
        self._size = 0
        self._more = anyio.Event()
        self._all_read = anyio.Event()
        self._room = anyio.Event()
        self._soon = False
        self._gone = False

    @property
    def full(self) -> bool:
        """Whether much waits to be read."""
        return self._size > FULL_BYTES

    async def room(self) -> None:
        """Wait until more was read; the writer may still be full then."""
        if self._room.is_set():
            self._room = anyio.Event()  # anyio's events cannot be reset
        await self._room.wait()

    def put(self, message: bytes, *, now: bool = False) -> None:
        """Send a message.

        Args:
            message: The message, without its line end.
            now: Write it at once, with those before it, as far as that needs no waiting; else it is
                written soon, together with others.
        """
        if self._gone:
            return
        self._queue.append(message)
        self._size += len(message) + 1
        if self._size > MAX_UNREAD_BYTES:
            log.error("the client does not read; %d bytes wait for it", self._size)
            self._lose()
        elif now:
            self._push_on()
        elif not self._soon:
            self._soon = True
            get_running_loop().call_soon(self._push_soon)

    async def run(self) -> None:
        """Write what is put, until this is cancelled or the other side does not read any more."""
        blocking = os.get_blocking(self._descriptor)
        os.set_blocking(self._descriptor, False)
        try:
            while not self._gone:
                await self._more.wait()
                self._more = anyio.Event()
                self._push()
                while self._size:
                    await anyio.wait_writable(self._descriptor)
                    self._push()
        finally:
            self._gone = True  # what is put from now on may find the descriptor closed
            # A terminal would stay so for the program that is started in it next.
            os.set_blocking(self._descriptor, blocking)

    async def flushed(self) -> None:
        """Wait until everything is written, or the other side does not read any more."""
        while self._size:
            self._all_read = anyio.Event()
            await self._all_read.wait()

    def _push_soon(self) -> None:
        self._soon = False
        if self._size:
            self._push_on()

    def _push_on(self) -> None:
        """Write what is taken now; `run` writes the rest."""
        self._push()
        if self._size:
            self._more.set()

    def _push(self) -> None:
        """Write as much as is taken without waiting."""
        try:
            while self._size:
                if not self._rest:
                    self._rest = memoryview(b"\n".join((*self._queue, b"")))
                    self._queue.clear()
                written = os.write(self._descriptor, self._rest)
                self._rest = self._rest[written:]
                self._size -= written
                self._room.set()
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        self._all_read.set()

    def _lose(self) -> None:
        self._gone = True
        self._queue.clear()
        self._rest = memoryview(b"")
        self._size = 0
        self._all_read.set()
        self._room.set()
        self._lost()
