"""Notifications on their way from a watcher's thread to one client."""

from __future__ import annotations

from asyncio import get_running_loop
from typing import TYPE_CHECKING, NamedTuple

import anyio

from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.text.json_value import JsonObject


class Notification(NamedTuple):
    """A message without an answer."""

    method: str
    params: JsonObject


class NotificationQueue:
    """Holds what a client has not taken yet. The same notification waits once, however often it
    put in, so a client that reads slowly costs no memory and delays no other.

    It belongs to the event loop it is made in; `put` may be called from any thread.
    """

    def __init__(self) -> None:
        self._loop = get_running_loop()
        self._waiting: dict[bytes, Notification] = {}
        self._filled = anyio.Event()
        self._closed = False

    def put(self, method: str, params: JsonObject) -> None:
        """Add a notification; after the loop has ended it is dropped."""
        try:
            self._loop.call_soon_threadsafe(self._put, Notification(method, params))
        except RuntimeError:
            return

    def close(self) -> None:
        """End `deliver` once the queue is empty."""
        self._closed = True
        self._filled.set()

    async def deliver(self, send: Callable[[Notification], Awaitable[None]]) -> None:
        """Send everything, in order, until `close`.

        Args:
            send: Sends one notification; waiting for a slow client is its matter.
        """
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                await send(self._waiting.pop(key))
            if self._closed:
                return
            self._filled = anyio.Event()
            await self._filled.wait()

    def _put(self, notification: Notification) -> None:
        self._waiting.setdefault(encode([notification.method, notification.params]), notification)
        self._filled.set()
