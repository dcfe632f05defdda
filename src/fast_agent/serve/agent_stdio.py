"""Agents over stdio: JSON-RPC messages, one a line, between the SDK and a pair of descriptors."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from anyio.lowlevel import checkpoint
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from fast_agent.resources.encoding import encode
from fast_agent.resources.problem import INVALID_REQUEST, PARSE_ERROR
from fast_agent.resources.stdio import LONGEST_LINE, Lines
from fast_agent.serve.agent_drain import LAST_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from fast_agent.serve.agent_server import AgentServer
    from fast_agent.text.json_value import JsonObject

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Outgoing = MemoryObjectReceiveStream[SessionMessage]

_CHUNK = 1 << 16
_PIECE = 4096
"""What a pipe that takes anything takes without a wait."""


class StdioEdge:
    """One client over two descriptors.

    Args:
        input_fd: Where messages come from; read blocking.
        output_fd: Where they go; written blocking.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input = input_fd
        self._output = output_fd
        self._writing = anyio.Lock()
        self._reading = anyio.CancelScope()
        self._open = 0
        self._idle = anyio.Event()

    async def serve(self, server: AgentServer) -> None:
        """Answer until the input ends or `stop`; calls then have `grace_seconds` to end."""
        incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_all, outgoing)
            tasks.start_soon(self._read_all, incoming, server)
            options = server.sdk.create_initialization_options()
            await server.sdk.run(read_stream, write_stream, options)
            tasks.cancel_scope.cancel()

    def stop(self) -> None:
        """Read no more."""
        self._reading.cancel()

    async def _read_all(self, incoming: Incoming, server: AgentServer) -> None:
        async with incoming:
            with self._reading:
                lines = Lines()
                while chunk := await self._chunk():
                    for line in lines.feed(chunk):
                        await self._take(line, incoming)
                for line in lines.end():
                    await self._take(line, incoming)
            with anyio.move_on_after(server.grace_seconds):
                await self._answered()
            server.scopes.call_off()
            with anyio.move_on_after(LAST_SECONDS):
                await self._answered()

    async def _answered(self) -> None:
        """Wait until no request is open."""
        while self._open:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def _chunk(self) -> bytes:
        try:
            await _ready(anyio.wait_readable, self._input)
            return os.read(self._input, _CHUNK)
        except OSError:
            return b""

    async def _take(self, line: bytes | None, incoming: Incoming) -> None:
        if line is None:
            await self._refuse(INVALID_REQUEST, f"a message is longer than {LONGEST_LINE} bytes")
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            parsed = all(one["type"] != "json_invalid" for one in error.errors())
            if parsed:
                await self._refuse(INVALID_REQUEST, "the message is none of JSON-RPC 2.0")
            else:
                await self._refuse(PARSE_ERROR, "the message is no JSON")
            return
        if isinstance(message, types.JSONRPCRequest):
            self._open += 1
        elif isinstance(message, types.JSONRPCNotification):
            self._note(message)
        await incoming.send(SessionMessage(message))

    def _note(self, message: types.JSONRPCNotification) -> None:
        # A request that is called off is not answered.
        if message.method == "notifications/cancelled":
            self._settled()

    def _settled(self) -> None:
        self._open = max(0, self._open - 1)
        if not self._open:
            self._idle.set()

    async def _write_all(self, outgoing: Outgoing) -> None:
        async with outgoing:
            async for one in outgoing:
                message = one.message
                data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                await self._write(data)
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settled()

    async def _refuse(self, code: int, message: str) -> None:
        error: JsonObject = {"code": code, "message": message}
        await self._write(encode({"jsonrpc": "2.0", "id": None, "error": error}) + b"\n")

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            view = memoryview(data)
            try:
                while view:
                    await _ready(anyio.wait_writable, self._output)
                    view = view[os.write(self._output, view[:_PIECE]) :]
            except OSError:
                self.stop()  # the client has gone


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    """Wait until a descriptor can be used; a file can be at any time."""
    try:
        await wait(descriptor)
    except PermissionError:
        await checkpoint()


@contextmanager
def own_stdio() -> Generator[StdioEdge]:
    """Take standard input and output for messages alone.

    What anything else prints meanwhile goes to standard error, and what it reads is empty.
    """
    own_input, own_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    yield StdioEdge(own_input, own_output)
    os.dup2(own_output, 1)
    os.close(own_output)
    os.close(own_input)


@asynccontextmanager
async def stopped_by_signals(edge: StdioEdge) -> AsyncGenerator[None]:
    """Stop reading when SIGTERM or SIGINT comes, and end all at the second."""
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                await anext(signals)
                edge.stop()
                await anext(signals)
                tasks.cancel_scope.cancel()

        tasks.start_soon(wait)
        yield
        tasks.cancel_scope.cancel()
