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

    Each is taken in the event loop itself, so that none costs a change of tasks.

    Args:
        descriptor: Where from.
        begun: The beginning of a message that was read before.
    """

    def __init__(self, descriptor: int, *, begun: bytes = b"") -> None:
        self._descriptor = descriptor
        self._first = begun
        self._lines = Lines(LONGEST_LINE)

    @property
    def begun(self) -> bytes:
        """The beginning of a message whose end did not come yet."""
        return self._lines.begun

    async def run(self, take: Callable[[bytes | None], None]) -> None:
        """Take what comes until the input ends or this is cancelled.

        Args:
            take: Called for each message; None is one that was too long.

        Raises:
            OSError: It cannot be read.
        """
        loop = get_running_loop()
        over: Future[None] = loop.create_future()
        self._take_all(self._first, take)
        try:
            loop.add_reader(self._descriptor, self._ready, take, over)
        except PermissionError:  # a plain file, which is always ready
            while chunk := await run_sync(os.read, self._descriptor, _CHUNK):
                self._take_all(chunk, take)
        else:
            try:
                await over
            finally:
                self.stop()
        for line in self._lines.end():
            take(line)

    def stop(self) -> None:
        """Take nothing more from now on, where it does not wait for a plain file."""
        get_running_loop().remove_reader(self._descriptor)

    def _ready(self, take: Callable[[bytes | None], None], over: Future[None]) -> None:
        """Take what is there; what goes wrong is raised where `run` waits."""
        try:
            if over.done():  # it was cancelled just now
                return
            chunk = self._chunk()
            if chunk:
                self._take_all(chunk, take)
                return
        except BlockingIOError:  # another process took it
            return
        except Exception as error:  # noqa: BLE001 (a task boundary)
            over.set_exception(error)
        else:
            over.set_result(None)
        self.stop()

    def _chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK)
        except ConnectionError:
            return b""

    def _take_all(self, chunk: bytes, take: Callable[[bytes | None], None]) -> None:
        for line in self._lines.feed(chunk):
            take(line)
