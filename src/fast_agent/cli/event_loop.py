"""The event loop of a command, which a signal always interrupts."""

from __future__ import annotations

import signal
import socket
import threading
from asyncio import get_running_loop
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

T = TypeVar("T")


def run(work: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run an asynchronous function to its end, as `anyio.run` does, in a loop that signals wake."""
    import anyio

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
