"""Log messages of servers, passed on to Python's logging."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fast_agent.mcp.untrusted import one_line

if TYPE_CHECKING:
    from mcp.client.session import LoggingFnT
    from mcp.types import LoggingMessageNotificationParams

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


def forward(server_name: str) -> LoggingFnT:
    """Make the callback that logs what one server sends, as one bounded line each."""

    async def log(params: LoggingMessageNotificationParams) -> None:
        text = params.data if isinstance(params.data, str) else repr(params.data)
        _log.log(_LEVELS.get(params.level, logging.INFO), "`%s`: %s", server_name, one_line(text))

    return log
