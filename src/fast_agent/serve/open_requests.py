"""Open requests: how many of a client's have no answer yet."""

from __future__ import annotations

import anyio


class OpenRequests:
    """Counts requests of one client from when they come until they are answered."""

    def __init__(self) -> None:
        self._count = 0
        self._none = anyio.Event()

    def add(self) -> None:
        """Take note of one that came."""
        self._count += 1

    def settle(self) -> None:
        """Take note of one that was answered, or called off."""
        self._count = max(0, self._count - 1)
        if not self._count:
            self._none.set()

    async def none(self) -> None:
        """Wait until every one is settled."""
        while self._count:
            self._none = anyio.Event()
            await self._none.wait()
