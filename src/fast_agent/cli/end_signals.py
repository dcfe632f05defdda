"""Signals that end a command: SIGTERM and SIGHUP act as an interrupt does."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_STATUS_OF_SIGNALS = 128


@contextmanager
def ended_by_signals() -> Generator[None]:
    """Interrupt the command at the first SIGTERM or SIGHUP, so that it closes what it holds.

    By default they kill the process at once, and the commands and servers that it started run on.
    A command with a handler for one of them keeps it. An ignored signal, as under
    `nohup`, stays ignored.

    Raises:
        SystemExit: The command was interrupted by one of them; the status is 128 and its number.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        # Only the first: a terminal that is closed and `timeout` send theirs twice, and a second
        # interrupt would keep the command from closing what it holds.
        came.append(number)
        if len(came) > 1:
            return
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background
            _interrupt_between_steps()
        else:
            signal.raise_signal(signal.SIGINT)

    taken = [one for one in _SIGNALS if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, interrupt)
    try:
        yield
    except BaseException as error:
        done = isinstance(error, SystemExit) and error.code in (None, 0)
        if not came or done:
            raise
        sys.exit(_STATUS_OF_SIGNALS + came[0])
    finally:
        for one in taken:
            if signal.getsignal(one) is interrupt:
                signal.signal(one, signal.SIG_DFL)


def _interrupt_between_steps() -> None:
    """Interrupt as SIGINT would, but inside an event loop only between two steps of it.

    Where SIGINT is ignored, asyncio installs no handler that cancels the main task. Raising at once
    could end a task between any two instructions, half way through what it closes.
    """
    asyncio = sys.modules.get("asyncio")  # imported by whoever runs a loop
    try:
        loop = None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if loop is None:
        raise KeyboardInterrupt
    loop.call_soon_threadsafe(_interrupt)


def _interrupt() -> None:
    raise KeyboardInterrupt
