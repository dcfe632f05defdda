"""The command `fast-agent`.

A server of resources over stdio is started by a host at every launch, so that one command is begun
without the library that reads command lines; all others go through `cli.command_table`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress

from fast_agent.errors import FastAgentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from types import FrameType

    from click import Group as _Group

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_STATUS_OF_SIGNALS = 128

_STARTING_THRESHOLD = 50_000
"""Values between two searches for garbage while a command starts: imports make none."""

_USUAL_THRESHOLD = gc.get_threshold()[0]


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
    came: list[list[int]] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        # Only the first: a terminal that is closed and `timeout` send theirs twice, and a second
        # interrupt would keep the command from closing what it holds. The second may come between
        # any two instructions of this function, so that the list decides which was the first.
        this = [number]
        came.append(this)
        if came[0] is not this:
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
        sys.exit(_STATUS_OF_SIGNALS + came[0][0])
    finally:
        for one in taken:
            if signal.getsignal(one) is interrupt:
                signal.signal(one, signal.SIG_DFL)


def _interrupt_between_steps() -> None:
    """Interrupt as SIGINT would, but inside an event loop only between two steps of it.

    Where SIGINT is ignored, asyncio installs no handler that cancels the main task. Raising at once
    could end a task between any two instructions, half way through what it closes.
    """
    asyncio = sys.modules.get("asyncio")  # imported by any program that runs a loop
    try:
        loop = None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if loop is None:
        raise KeyboardInterrupt
    loop.call_soon_threadsafe(_interrupt)


def _interrupt() -> None:
    raise KeyboardInterrupt


def __getattr__(name: str) -> _Group:
    """Return `cli`, the whole command, to code that inspects it."""
    if name == "cli":
        from fast_agent.cli.command_table import cli

        return cli
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit status 0, 1 (it failed), 2 (wrong usage) or 3 (not approved).

    An interrupt ends it with status 130; SIGTERM and SIGHUP end it alike, with 143 and 129.
    """
    if arguments is not None:
        with ended_by_signals():
            _run(list(arguments))
        return
    gc.set_threshold(_STARTING_THRESHOLD)
    try:
        with ended_by_signals():
            _run(sys.argv[1:])
    except SystemExit as error:
        if isinstance(error.code, int | None):
            _exit_now(error.code or 0)
        raise
    finally:
        # The interpreter searches several times while it ends, a seventh of a short command.
        gc.freeze()


def _serve_plainly(arguments: list[str]) -> bool:
    """Serve resources over stdio, where the arguments plainly ask for that, or return False.

    A host starts this server at every launch and waits for it, so that it is begun with as few
    imports as it can be.
    """
    from fast_agent.cli.resource_options import SERVE, http_option, read_plainly

    values = read_plainly(SERVE, arguments)
    if values is None or values["transport"] != "stdio" or http_option(values):
        return False
    serve_resources(values)
    return True


def serve_resources(values: Mapping[str, object]) -> None:
    """Serve over stdio what the values of `resources serve` name."""
    from fast_agent.cli.resource_options import SERVER_NAME, roots_of
    from fast_agent.resources.stdio import serve_stdio
    from fast_agent.version import __version__

    service = roots_of(values).open().service(SERVER_NAME, __version__)
    end_start()
    if os.isatty(0):
        from fast_agent.cli.output import CLIENT_EXPECTED, report_note

        report_note(CLIENT_EXPECTED)
    serve_stdio(service)


def end_start() -> None:
    """Search for garbage as usual from now on, and not among what the start of a command made."""
    if gc.get_threshold()[0] == _STARTING_THRESHOLD:
        gc.freeze()
        gc.set_threshold(_USUAL_THRESHOLD)


_WITH_THREADS = frozenset({"temporalio.bridge.temporal_sdk_bridge", "botocore"})
"""Modules whose threads may outlast what they were asked for."""


def _exit_now(status: int) -> None:
    """End the process at once if threads could crash its ordinary end, or hold it up.

    Those of Temporal's library take the interpreter's lock while it is torn down, and end about one
    command in a hundred with a segmentation fault after everything was done. An import that a user
    does not wait for any more takes seconds, and a request of Amazon's SDK as long as its answer.
    """
    if _imports_provider() or not _WITH_THREADS.isdisjoint(sys.modules):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, broken or missing
                stream.flush()
        os._exit(status)


def _imports_provider() -> bool:
    """Return whether a thread imports packages of a provider."""
    provider = sys.modules.get("fast_agent.models.providers.provider")
    if provider is None:
        return False
    is_importing = getattr(provider, "is_importing", None)
    return is_importing is None or is_importing()  # without it, it is being imported itself


def _run(given: list[str]) -> None:
    serves = given[:2] == ["resources", "serve"]
    # A server of resources over stdio writes next to nothing, and must start fast.
    if not serves or os.isatty(1) or os.isatty(2):
        from fast_agent.cli.output import guard_streams

        guard_streams()
    try:
        if serves and _serve_plainly(given[2:]):
            return
        from fast_agent.cli.command_table import cli

        cli.main(args=given or ["--help"], prog_name="fast-agent")
    except FastAgentError as error:
        from fast_agent.cli.output import report_error

        report_error(error)
        sys.exit(error.status)
    except OSError as error:
        from fast_agent.cli.output import report_system_error

        report_system_error(error)
        sys.exit(1)
