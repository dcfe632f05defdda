"""The protocol over the standard input and output of a server: one line a message.

The SDK has such a transport too. This one also bounds the length of a line, and fails the requests
that a line which cannot be read may have answered.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

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

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.types import JSONRPCMessage, RequestId

    from fast_agent.mcp.process import ServerProcess
    from fast_agent.text.json_value import JsonValue

_HEAD_ID: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,18}|"[^"\\]{1,200}")'
)
"""Where an answer names its request before anything else, as most servers write it."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN_BYTES = 400
_FLUSH_SECONDS = 0.5

_log = logging.getLogger("fast_agent.mcp.server")


class StdioTransport:
    """What the SDK reads from a process and writes to it.

    Args:
        process: The process, which runs for as long as the transport is used.
    """

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._unanswered: dict[RequestId, None] = {}
        self._bounds = MessageBounds(process.name)

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[TransportStreams]:
        """Pass the two streams of the process to the SDK."""
        incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
        written = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, incoming_in)
            tasks.start_soon(self._write, outgoing_out, written)
            try:
                yield incoming, outgoing
            finally:
                # Shielded: what a cancelled caller sent last is written. The wait is bounded.
                with anyio.CancelScope(shield=True):
                    incoming.close()
                    outgoing.close()
                    with anyio.move_on_after(_FLUSH_SECONDS):
                        await written.wait()
                tasks.cancel_scope.cancel()

    async def _read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            async with incoming:
                async for line in self._process.lines(MESSAGE_LIMIT):
                    for item in self._read_line(line):
                        await incoming.send(item)

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
        self, outgoing: MemoryObjectReceiveStream[SessionMessage], written: anyio.Event
    ) -> None:
        stdin = self._process.stdin
        try:
            async with outgoing:
                async for message in outgoing:
                    self._note(message.message)
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            _log.debug("server `%s` no longer reads", self._process.name)
        finally:
            written.set()


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
