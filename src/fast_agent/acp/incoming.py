"""Incoming messages: what the other side sends, taken as soon as it is there."""

from __future__ import annotations

import os
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from fast_agent.resources.stdio import Lines

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

LONGEST_LINE: Final = 32 << 20
"""Most bytes of one message; pictures in prompts are long."""

_CHUNK: Final = 1 << 16


class Incoming:
    """Reads messages from a descriptor, one a line.

    Bytes are read in a callback of the event loop, whose watch of the descriptor stays: to begin it
    anew for each message costs more than to take one. Messages are taken in a task, because what
    they begin starts tasks, and in a callback anyio does not know its library under `asyncio.run`.

    Args:
        descriptor: Where from.
        begun: The beginning of a message that was read before.
    """

    def __init__(self, descriptor: int, *, begun: bytes = b"") -> None:
        self._descriptor = descriptor
        self._chunks = [begun]
        self._lines = Lines(LONGEST_LINE)
        self._waiter: Future[None] | None = None
        self._over = False
        self._problem: OSError | None = None

    @property
    def begun(self) -> bytes:
        """What was read and not taken yet: the beginning of a message whose end did not come."""
        return b"".join((self._lines.begun, *self._chunks))

    async def run(self, take: Callable[[bytes | None], None]) -> None:
        """Take what comes until the input ends or this is cancelled.

        Args:
            take: Called for each message; None is one that was too long.

        Raises:
            OSError: It cannot be read.
        """
        loop = get_running_loop()
        try:
            loop.add_reader(self._descriptor, self._ready)
        except PermissionError:  # a plain file, which is always ready
            self._take_all(take)
            while chunk := await run_sync(os.read, self._descriptor, _CHUNK):
                self._chunks.append(chunk)
                self._take_all(take)
        else:
            try:
                self._take_all(take)
                while not self._over:
                    self._waiter = loop.create_future()
                    await self._waiter
                    self._take_all(take)
            finally:
                self.stop()
        if self._problem is not None:
            raise self._problem
        for line in self._lines.end():
            take(line)

    def stop(self) -> None:
        """Read nothing more from now on, where it does not wait for a plain file."""
        get_running_loop().remove_reader(self._descriptor)

    def _ready(self) -> None:
        """Read what is there."""
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:  # another process took it
            return
        except ConnectionError:
            chunk = b""
        except OSError as error:
            chunk, self._problem = b"", error
        if chunk:
            self._chunks.append(chunk)
        else:
            self._over = True
            self.stop()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take_all(self, take: Callable[[bytes | None], None]) -> None:
        while self._chunks:
            for line in self._lines.feed(self._chunks.pop(0)):
                take(line)
