"""What a server writes besides answers, passed on to Python's logging within a bound."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING

from fast_agent.mcp.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.types import LoggingMessageNotificationParams

MAX_LINES = 100
"""Most lines of one server that are logged within `WINDOW_SECONDS`; what follows is counted."""

WINDOW_SECONDS = 60.0

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}

_log = logging.getLogger("fast_agent.mcp.server")


class ServerLog:
    """The log of one connection: messages of the server, and lines of its standard error.

    Args:
        server_name: The server.
        clock: Seconds that only go forward.
    """

    def __init__(self, server_name: str, clock: Callable[[], float] = monotonic) -> None:
        self._name = server_name
        self._clock = clock
        self._began = clock()
        self._lines = 0
        self._left_out = 0

    async def receive(self, params: LoggingMessageNotificationParams) -> None:
        """Log a message of the protocol."""
        level = _LEVELS.get(params.level, logging.INFO)
        if _log.isEnabledFor(level):
            self.write(level, params.data if isinstance(params.data, str) else repr(params.data))

    def write(self, level: int, text: str) -> None:
        """Log text of the server as one bounded line, or count it.

        Args:
            level: The level of `logging`.
            text: What the server wrote.
        """
        if not _log.isEnabledFor(level):
            return
        now = self._clock()
        if now - self._began >= WINDOW_SECONDS:
            self.close()
            self._began, self._lines = now, 0
        if self._lines >= MAX_LINES:
            self._left_out += 1
            return
        self._lines += 1
        _log.log(level, "server `%s`: %s", self._name, one_line(text))
        if self._lines == MAX_LINES:
            _log.warning(
                "server `%s` wrote %d lines in less than %g s; what follows is only counted",
                self._name,
                MAX_LINES,
                WINDOW_SECONDS,
            )

    def close(self) -> None:
        """Log how many lines were left out since it was last said."""
        if self._left_out:
            _log.warning("server `%s`: %d lines were left out", self._name, self._left_out)
            self._left_out = 0
