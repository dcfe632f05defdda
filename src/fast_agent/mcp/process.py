"""The process of a server: its start, its standard error and its end, without the protocol.

Nothing of the SDK is imported here, so that a server starts up while this program still imports it.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
from collections import deque
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.abc

from fast_agent.errors import ToolError, TrustError
from fast_agent.mcp.content import one_line
from fast_agent.tools.shell.group_guard import guard_group, release_group
from fast_agent.tools.shell.process_group import make_private, open_leader
from fast_agent.trust.policy import marked

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcp.types import LoggingMessageNotificationParams

    from fast_agent.mcp.server import ServerSpec, StdioTarget

_ON_WINDOWS: Final = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
    "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
_ELSEWHERE: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_INHERITED: Final = _ON_WINDOWS if os.name == "nt" else _ELSEWHERE
"""The variables a server inherits, as with the SDK; its own `env` is added to them."""
_CERTIFICATES: Final = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
)
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_NETWORK: Final = (*_CERTIFICATES, *_PROXIES, *map(str.lower, _PROXIES))
"""The variables without which nothing is reached from some networks: a launcher such as `npx`
downloads the server."""

_TAIL_LINES = 20
_TAIL_LINE_BYTES = 2_000
_LEAVE_SECONDS = 2.0
_SILENT_LEAVE_SECONDS = 0.2
"""How long a server may take to end that never answered, and so has nothing to finish."""
_TERM_SECONDS = 2.0
_HEAR_SECONDS = 0.2
_POLL_SECONDS = 0.01

T = TypeVar("T")

_log = logging.getLogger("fast_agent.mcp.server")


class ServerProcess:
    """A process that speaks JSON-RPC lines over its standard input and output.

    It knows how it ended and keeps the last lines of its standard error for reports. The whole
    process group ends with it, so that nothing a server started outlives it.

    Args:
        spec: The server.
        target: Its command.
        server_log: What its standard error is logged to.
    """

    def __init__(self, spec: ServerSpec, target: StdioTarget, server_log: ServerLog) -> None:
        self.name = spec.name
        self._spec = spec
        self._log = server_log
        self._target = target
        self._process: anyio.abc.Process | None = None
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._has_answered = False

    @property
    def pid(self) -> int | None:
        """The process id, which is also its group's; None before the start."""
        return None if self._process is None else self._process.pid

    @property
    def last_words(self) -> tuple[str, ...]:
        """The last lines of its standard error, made fit to be shown."""
        return tuple(self._tail)

    @property
    def ending(self) -> str | None:
        """How it ended, such as `exit status 3`; None while it runs."""
        status = None if self._process is None else self._process.returncode
        if status is None:
            return None
        if status >= 0:
            return f"exit status {status}"
        try:
            return f"signal {signal.Signals(-status).name}"
        except ValueError:
            return f"signal {-status}"

    @property
    def stdin(self) -> anyio.abc.ByteSendStream:
        """Its standard input, once it runs."""
        return _pipe(None if self._process is None else self._process.stdin)

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream:
        """Its standard output, once it runs."""
        return _pipe(None if self._process is None else self._process.stdout)

    async def lines(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield what it writes; a line of over `limit` bytes ends it."""
        async for line in lines_of(self.stdout, limit):
            self._has_answered = True
            yield line

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Start the process; leaving ends its process group.

        Raises:
            ToolError: The command or its working directory is not there or cannot be used, or
                may not be started.
        """
        process = await self._start()
        self._process = process
        heard = anyio.Event()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, process, heard)
            try:
                yield
            except Exception as problem:  # noqa: BLE001 - raised below, not as a group
                failure = problem
            finally:
                # Shielded: a cancelled caller must not leave the process behind. Waits are bounded.
                with anyio.CancelScope(shield=True):
                    tasks.start_soon(_drain, self.stdout)
                    seconds = _LEAVE_SECONDS if self._has_answered else _SILENT_LEAVE_SECONDS
                    await _end(process, heard, seconds)
                    release_group(process.pid)
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _start(self) -> anyio.abc.Process:
        target = self._target
        try:
            self._spec.check_start()
        except TrustError as refused:
            raise ToolError(refused.message, hint=refused.hint) from refused
        # Servers that start at once are all started before one of them waits for an import.
        if target.cwd is not None and not Path(target.cwd).is_dir():  # noqa: ASYNC240
            raise ToolError(
                f"server `{self.name}`: the working directory `{target.cwd}` does not exist",
                hint="correct the server's `cwd`",
            )
        make_private()
        try:
            process = await open_leader(
                [self._spec.program(target), *target.args],
                cwd=target.cwd,
                env=marked(_inherited() | dict(target.env)),
            )
        except (OSError, ValueError) as problem:
            raise self._cannot_start(problem) from problem
        guard_group(process.pid)
        return process

    def _cannot_start(self, problem: OSError | ValueError) -> ToolError:
        code = problem.errno if isinstance(problem, OSError) else None
        command = self._target.command
        if code == errno.ENOENT:
            why, hint = "was not found", "install it, or correct the server's `command`"
        elif code == errno.EACCES:
            why, hint = "is not executable", "make it executable, or correct the server's `command`"
        else:
            why, hint = f"cannot be started: {one_line(str(problem)).lower()}", None
        return ToolError(f"server `{self.name}`: the command `{command}` {why}", hint=hint)

    async def _listen(self, process: anyio.abc.Process, heard: anyio.Event) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            async for line in lines_of(_pipe(process.stderr), _TAIL_LINE_BYTES, cut=True):
                text = one_line(line.decode("utf-8", "replace"))
                if text:
                    self._tail.append(text)
                    self._log.write(logging.DEBUG, text)
        heard.set()


def _inherited() -> dict[str, str]:
    """Return the variables every server gets, but no functions of a shell and no passwords."""
    found = {name: os.environ[name] for name in (*_INHERITED, *_NETWORK) if name in os.environ}
    return {
        name: text
        for name, text in found.items()
        if not text.startswith("()") and not (name in _NETWORK and "@" in text)
    }


def _pipe(pipe: T | None) -> T:
    if pipe is None:  # open_process creates pipes by default
        raise RuntimeError("the process has no pipe")
    return pipe


async def _drain(stdout: anyio.abc.ByteReceiveStream) -> None:
    """Read on, so that a server that still writes while it ends does not block on a full pipe."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        async for _ in stdout:
            pass


async def lines_of(
    stream: anyio.abc.ByteReceiveStream, limit: int, *, cut: bool = False
) -> AsyncGenerator[bytes]:
    """Yield lines; one over `limit` bytes is cut, or ends the stream."""
    pieces: list[bytes] = []
    held = 0
    async for chunk in stream:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            pieces.append(piece)
            yield b"".join(pieces)[: limit if cut else None]
            pieces, held = [], 0
        if rest and held <= limit:
            pieces.append(rest)
            held += len(rest)
        if held > limit and not cut:
            _log.error("a server sent a line of over %d bytes; its connection is closed", limit)
            return
    if pieces:
        yield b"".join(pieces)[: limit if cut else None]


async def _end(process: anyio.abc.Process, heard: anyio.Event, seconds: float) -> None:
    """Close its input, let it leave within some seconds, then end what is left of its group."""
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    await _poll_until(lambda: process.returncode is not None, seconds)
    if _signal_group(process.pid, signal.SIGTERM):
        await _poll_until(
            lambda: process.returncode is not None and not _group_lives(process.pid), _TERM_SECONDS
        )
        if _signal_group(process.pid, signal.SIGKILL):
            await _poll_until(lambda: process.returncode is not None, _TERM_SECONDS)
    await _poll_until(heard.is_set, _HEAR_SECONDS)
    for pipe in (process.stdout, process.stderr):
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            if pipe is not None:
                await pipe.aclose()


async def _poll_until(condition: Callable[[], bool], seconds: float) -> None:
    # Polled: waiting for the process also waits for pipes its children may hold open.
    with anyio.move_on_after(seconds):
        while not condition():  # noqa: ASYNC110 - a process group has no event
            await anyio.sleep(_POLL_SECONDS)


def _signal_group(pid: int, number: signal.Signals) -> bool:
    """Signal the group; False when nothing of it is left."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _group_lives(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


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
