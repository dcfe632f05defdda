"""Drain: the time between the word to stop and the end, in which calls under way are answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_SECONDS = 0.02


class Drain:
    """Waits for calls under way; it takes no new ones.

    Args:
        busy: Whether a call is under way.
        seconds: The longest wait.
    """

    def __init__(self, busy: Callable[[], bool], seconds: float) -> None:
        self._busy = busy
        self._seconds = seconds
        self.begun = False

    def begin(self, then: Callable[[], None]) -> None:
        """Begin; for a signal's handler, in the thread of the event loop.

        Args:
            then: Called when nothing is under way any more, or the time is up; a second `begin`
                calls it at once.
        """
        if self.begun:
            then()
            return
        self.begun = True
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds

        def look() -> None:
            if self._busy() and loop.time() < end:
                loop.call_later(_LOOK_SECONDS, look)
            else:
                then()

        loop.call_soon_threadsafe(look)
