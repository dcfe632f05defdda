"""A command's process: an event loop that a signal always interrupts, log records for a user."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import warnings
from asyncio import get_running_loop
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

from fast_agent.cli.main import end_start
from fast_agent.cli.output import error_stream
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

T = TypeVar("T")


def run(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run an asynchronous function to its end, as `anyio.run` does, in a loop that signals wake."""
    import anyio

    end_start()

    async def woken() -> T:
        with _woken_by_signals():
            return await work(*arguments)

    return anyio.run(woken)


@contextmanager
def _woken_by_signals() -> Generator[None]:
    """Wake the running event loop at each signal, so that its Python handler runs at once.

    Such a handler runs when the main thread executes its next instruction. If the signal comes
    just before the loop starts to wait, or another thread receives it, that is only when something
    else wakes the loop: a command that runs a tool for an hour would ignore SIGTERM for an hour.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    loop = get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)

        def drain() -> None:
            with suppress(BlockingIOError):
                ours.recv(4096)

        try:
            loop.add_reader(ours, drain)
        except NotImplementedError:  # a loop of Windows, which wakes by itself
            yield
            return
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(ours)


LOG_VARIABLE = "FAST_AGENT_LOG"
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
    debug = os.environ.get(LOG_VARIABLE, "").lower() == "debug"
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
        if not sys.warnoptions:
            # For developers of programs with them, such as of a reason that is newer than they are.
            warnings.filterwarnings("ignore", module=r"(google\.genai|pydantic_ai|mistralai)\b")
    root.addHandler(handler)
