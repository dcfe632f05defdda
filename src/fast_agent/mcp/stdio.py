"""A server as a process: JSON-RPC lines over its standard input and output.

The SDK has such a transport too. This one also knows how the process ended, keeps the last lines
of its standard error for reports, bounds the length of a line, and ends the whole process group,
so that nothing a server started outlives it.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
from collections import deque
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

import anyio
import anyio.abc
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from fast_agent.errors import ToolError
from fast_agent.mcp.content import one_line
from fast_agent.mcp.message_bounds import MESSAGE_LIMIT, VALUE_LIMIT, MessageBounds, values_of
from fast_agent.rpc.message import (
    InvalidMessageError,
    Notification,
    Request,
    Response,
    decode,
    message_of,
)
from fast_agent.tools.shell.group_guard import guard_group, release_group
from fast_agent.tools.shell.process_group import make_private
from fast_agent.trust.policy import marked

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.types import JSONRPCMessage, LoggingMessageNotificationParams, RequestId

    from fast_agent.mcp.server import StdioTarget
    from fast_agent.text.json_value import JsonValue


_HEAD_ID: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,18}|"[^"\\]{1,200}")'
)
"""Where an answer names its request before anything else, as most servers write it."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN_BYTES = 400
_TAIL_LINES = 20
_TAIL_LINE_BYTES = 2_000
_LEAVE_SECONDS = 2.0
_TERM_SECONDS = 2.0
_FLUSH_SECONDS = 0.5
_HEAR_SECONDS = 0.2
_POLL_SECONDS = 0.01

_log = logging.getLogger("fast_agent.mcp.server")


class ServerProcess:
    """The process behind a connection: how it ended and what it wrote on its standard error."""

    def __init__(self, name: str, target: StdioTarget, server_log: ServerLog) -> None:
        self._name = name
        self._log = server_log
        self._target = target
        self._process: anyio.abc.Process | None = None
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._unanswered: dict[RequestId, None] = {}
        self._bounds = MessageBounds(name)

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

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Start the process and pass its two streams to the SDK; leaving ends the process group.

        Raises:
            ToolError: The command or its working directory is not there or cannot be used.
        """
        process = await self._start()
        self._process = process
        incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
        written, heard = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, process, incoming_in)
            tasks.start_soon(self._write, process, outgoing_out, written)
            tasks.start_soon(self._listen, process, heard)
            try:
                yield incoming, outgoing
            finally:
                # Shielded: a cancelled caller must not leave the process behind. Waits are bounded.
                with anyio.CancelScope(shield=True):
                    incoming.close()
                    outgoing.close()
                    with anyio.move_on_after(_FLUSH_SECONDS):
                        await written.wait()
                    await _end(process, heard)
                    release_group(process.pid)
                tasks.cancel_scope.cancel()

    async def _start(self) -> anyio.abc.Process:
        target = self._target
        if target.cwd is not None and not await anyio.Path(target.cwd).is_dir():
            raise ToolError(
                f"server `{self._name}`: the working directory `{target.cwd}` is not there",
                hint="correct the server's `cwd`",
            )
        make_private()
        try:
            process = await anyio.open_process(
                [target.command, *target.args],
                env=marked(get_default_environment() | dict(target.env)),
                cwd=target.cwd,
                start_new_session=True,
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
            why, hint = "may not be run", "make it executable, or correct the server's `command`"
        else:
            why, hint = f"cannot be started: {one_line(str(problem)).lower()}", None
        return ToolError(f"server `{self._name}`: the command `{command}` {why}", hint=hint)

    async def _read(
        self,
        process: anyio.abc.Process,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        stdout = _stream(process.stdout)
        over = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)
        with suppress(*over):
            async with incoming:
                async for line in _lines(stdout, MESSAGE_LIMIT):
                    for item in self._read_line(line):
                        await incoming.send(item)
        # A server that still writes while it is being closed must not block on a full pipe.
        with suppress(*over):
            async for _ in stdout:
                pass

    def _read_line(self, line: bytes) -> list[SessionMessage | Exception]:
        """Read a message; one that cannot be read fails the requests it may have answered."""
        try:
            message = _parse(self._bounds.apply(line))
        except ValueError as problem:
            failed = failed_requests(line, tuple(self._unanswered))
            for request_id in failed:
                self._unanswered.pop(request_id, None)
            reason = f"Failed to parse the answer: {problem}"
            return [_failure(request_id, reason) for request_id in failed] or [problem]
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unanswered.pop(message.id, None)
        return [SessionMessage(message)]

    def _note(self, message: JSONRPCMessage) -> None:
        """Remember which requests wait for an answer."""
        match message:
            case JSONRPCRequest():
                self._unanswered[message.id] = None
            case JSONRPCNotification(method="notifications/cancelled", params=dict() as params):
                self._unanswered.pop(cast("RequestId", params.get("requestId")), None)
            case _:
                pass

    async def _write(
        self,
        process: anyio.abc.Process,
        outgoing: MemoryObjectReceiveStream[SessionMessage],
        written: anyio.Event,
    ) -> None:
        stdin = process.stdin
        try:
            if stdin is None:
                return
            async with outgoing:
                async for message in outgoing:
                    self._note(message.message)
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            _log.debug("server `%s` no longer reads", self._name)
        finally:
            written.set()

    async def _listen(self, process: anyio.abc.Process, heard: anyio.Event) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            async for line in _lines(_stream(process.stderr), _TAIL_LINE_BYTES, cut=True):
                text = one_line(line.decode("utf-8", "replace"))
                if text:
                    self._tail.append(text)
                    self._log.write(logging.DEBUG, text)
        heard.set()


def _stream(stream: anyio.abc.ByteReceiveStream | None) -> anyio.abc.ByteReceiveStream:
    if stream is None:  # open_process creates pipes by default
        raise RuntimeError("the process has no pipe")
    return stream


async def _lines(
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


def _parse(line: bytes) -> JSONRPCMessage:
    """Read a message, as the SDK passes it on.

    Raises:
        ValueError: It cannot be read; the text says why, with its start.
    """
    reason = ""
    try:
        value = decode(line)
        if _SURROGATE.search(line) is not None:
            # Half a character, which no later reader or writer of the text could carry.
            json.dumps(value, ensure_ascii=False).encode()
        return _sdk_message(value)
    except InvalidMessageError as problem:
        reason = f" ({one_line(str(problem.__cause__ or problem), 100)})"
    except UnicodeEncodeError as problem:
        reason = f" ({problem.reason})"
    except ValueError:
        pass
    shown = one_line(line[:_SHOWN_BYTES].decode("utf-8", "replace"), 80)
    raise ValueError(f"not a protocol message{reason}: `{shown}`")


def _sdk_message(value: JsonValue) -> JSONRPCMessage:
    """Return the message that a JSON value is, as the SDK's value.

    Raises:
        InvalidMessageError: It is not a message.
        ValueError: The SDK takes no such answer, for example one whose result is not an object.
    """
    match message_of(value):
        case Request(request_id, method, params):
            return JSONRPCRequest(
                jsonrpc="2.0", id=request_id, method=method, params=dict(params) or None
            )
        case Notification(method, params):
            return JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params) or None)
        case Response(_, _, None):
            return JSONRPCResponse.model_validate(value)
        case Response():
            return JSONRPCError.model_validate(value)


def failed_requests(line: bytes, unanswered: tuple[RequestId, ...]) -> tuple[RequestId, ...]:
    """Find the requests that a line which cannot be read may have answered.

    Args:
        line: The line.
        unanswered: The requests that wait.

    Returns:
        The one the line names; all of them where it is a message that names none; none where it
        is not an answer at all, as with programs that print to their standard output.
    """
    if not line.lstrip().startswith(b"{"):
        return ()
    named: object = None
    # What Python reads is more than the protocol allows: lone surrogates, `NaN`, wrong bytes.
    parsed = _loads(line) if values_of(line) <= VALUE_LIMIT else None
    if isinstance(parsed, dict):
        fields = cast("dict[str, object]", parsed)
        if "method" in fields or not fields.keys() & {"jsonrpc", "id"}:
            return ()
        named = fields.get("id")
    elif (head := _HEAD_ID.match(line)) is not None:
        named = _loads(head[1])
    elif b'"jsonrpc"' not in line:
        return ()
    if named is None:
        return unanswered
    return tuple([one for one in unanswered if str(one) == str(named)])


def _loads(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _failure(request_id: RequestId, reason: str) -> SessionMessage:
    error = ErrorData(code=PARSE_ERROR, message=reason)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def _end(process: anyio.abc.Process, heard: anyio.Event) -> None:
    """Close its input, let it leave, then end whatever is left of its group."""
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        if process.stdin is not None:
            await process.stdin.aclose()
    await _until(lambda: process.returncode is not None, _LEAVE_SECONDS)
    if _signal_group(process.pid, signal.SIGTERM):
        await _until(
            lambda: process.returncode is not None and not _group_lives(process.pid), _TERM_SECONDS
        )
        if _signal_group(process.pid, signal.SIGKILL):
            await _until(lambda: process.returncode is not None, _TERM_SECONDS)
    await _until(heard.is_set, _HEAR_SECONDS)
    for pipe in (process.stdout, process.stderr):
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            if pipe is not None:
                await pipe.aclose()


async def _until(condition: Callable[[], bool], seconds: float) -> None:
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
