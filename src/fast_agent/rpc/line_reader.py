"""Reads lines from a descriptor in the event loop, as soon as they are there."""

from __future__ import annotations

import os
from asyncio import get_running_loop
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from fast_agent.rpc.lines import CHUNK_BYTES, Lines

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from fast_agent.rpc.line_writer import LineWriter


class LineReader:
    """Reads lines from a descriptor.

    Bytes are read in a callback of the event loop that stays registered: registering it again for
    each message costs more than handling one. Lines are handled in a task, because what they start
    starts tasks, and in a callback anyio does not know its library under `asyncio.run`.

    Args:
        descriptor: Where from.
        max_bytes: Maximum size of a line.
        begun: The start of a line that was read before.
        writer: Where answers go: nothing is read while it is full; None reads all the same.
    """

    def __init__(
        self,
        descriptor: int,
        max_bytes: int,
        *,
        begun: bytes = b"",
        writer: LineWriter | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._chunks = [begun]
        self._lines = Lines(max_bytes)
        self._writer = writer
        self._waiter: Future[None] | None = None
        self._over = False
        self._problem: OSError | None = None

    @property
    def begun(self) -> bytes:
        """What was read and not handled: the start of a line whose end did not come."""
        return b"".join((self._lines.begun, *self._chunks))

    async def run(self, take: Callable[[bytes | None], None]) -> None:
        """Handle lines until the input ends or this is cancelled.

        Args:
            take: Called for each line; None is one that was too long.

        Raises:
            OSError: The descriptor cannot be read.
        """
        loop = get_running_loop()
        try:
            loop.add_reader(self._descriptor, self._read)
        except PermissionError:  # a regular file, which is always ready
            await self._take_all(take)
            while chunk := await run_sync(os.read, self._descriptor, CHUNK_BYTES):
                self._chunks.append(chunk)
                await self._take_all(take)
        else:
            try:
                await self._take_all(take)
                while not self._over:
                    self._waiter = loop.create_future()
                    await self._waiter
                    await self._take_all(take)
            finally:
                self.stop()
        if self._problem is not None:
            raise self._problem
        for line in self._lines.end():
            take(line)

    def stop(self) -> None:
        """Read nothing more, unless the descriptor is a regular file."""
        get_running_loop().remove_reader(self._descriptor)

    def _read(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
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

    async def _take_all(self, take: Callable[[bytes | None], None]) -> None:
        while self._chunks:
            for line in self._lines.feed(self._chunks.pop(0)):
                take(line)
            if self._writer is not None and self._writer.full and not self._over:
                await self._wait(self._writer)

    async def _wait(self, writer: LineWriter) -> None:
        """Read nothing while the other side does not: what it sends waits in its pipe."""
        loop = get_running_loop()
        watched = loop.remove_reader(self._descriptor)
        while writer.full:
            await writer.room()
        if watched:
            loop.add_reader(self._descriptor, self._read)
