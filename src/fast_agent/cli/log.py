"""Log records for a person: one line each, without a traceback unless it is asked for."""

from __future__ import annotations

import logging
import os
from typing import TextIO, cast

from fast_agent.cli.output import error_stream
from fast_agent.text.visible import visible

VARIABLE = "FAST_AGENT_LOG"
"""Set to `debug`, it shows every record with its traceback."""


class _Terminal(logging.StreamHandler[TextIO]):
    """The handler of the command line, of which there is one."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__(error_stream())
        if not tracebacks:
            self.setFormatter(_OneLine())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; nothing is hidden of what says what waits for an approval."""
        whole = getattr(self.stream, "whole", None) if hasattr(record, "is_whole") else None
        if not callable(whole):
            super().emit(record)
            return
        try:
            stream = cast("TextIO", whole())
            stream.write(f"{self.format(record)}\n")
            stream.flush()
        except Exception:  # noqa: BLE001 - as `StreamHandler`: what is logged stops no turn
            self.handleError(record)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {visible(record.getMessage())}"


def show_log(*, quiet: bool) -> None:
    """Send log records to standard error.

    Args:
        quiet: Show only records with `is_security`, unless the variable asks for all.
    """
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, _Terminal)]:
        root.removeHandler(old)
    debug = os.environ.get(VARIABLE, "").lower() == "debug"
    handler = _Terminal(tracebacks=debug)
    if debug:
        root.setLevel(logging.DEBUG)
    else:
        handler.setLevel(logging.WARNING)
        if quiet:
            handler.addFilter(lambda record: getattr(record, "is_security", False))
        # The protocol library reports what our own errors say better.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        logging.getLogger("client").setLevel(logging.CRITICAL)
    root.addHandler(handler)
