"""Drain: the time between the word to stop and the end, in which calls under way are answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
