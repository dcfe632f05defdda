"""Agents over stdio: JSON-RPC messages, one a line, over a pair of descriptors."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from fast_agent.rpc.encoding import encode
from fast_agent.rpc.lines import MAX_LINE_BYTES, Lines
from fast_agent.rpc.message import INVALID_REQUEST
from fast_agent.serve.agent_drain import LAST_SECONDS
from fast_agent.serve.open_requests import OpenRequests
from fast_agent.serve.plain_lines import PlainLines
from fast_agent.serve.sdk_lines import SdkLines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from fast_agent.serve.agent_server import AgentServer
    from fast_agent.text.json_value import JsonObject

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
        self._requests = OpenRequests()

    async def serve(self, server: AgentServer) -> None:
        """Answer until the input ends or `stop`; calls then have `grace_seconds` to end."""
        async with anyio.create_task_group() as tasks:
            sdk = SdkLines(server, tasks, self._requests, self._send, self._refuse)
            plain = PlainLines(server, tasks, self._requests, self._send, sdk)
            try:
                with self._reading:
                    await self._read_all(plain)
                with anyio.move_on_after(server.grace_seconds):
                    await self._requests.none()
                server.scopes.call_off()
                with anyio.move_on_after(LAST_SECONDS):
                    await self._requests.none()
                with anyio.move_on_after(LAST_SECONDS):
                    await sdk.end()
            finally:
                await plain.close()
            tasks.cancel_scope.cancel()

    def stop(self) -> None:
        """Read no more."""
        self._reading.cancel()

    async def _read_all(self, plain: PlainLines) -> None:
        lines = Lines()
        while chunk := await self._chunk():
            for line in lines.feed(chunk):
                await self._take(line, plain)
        for line in lines.end():
            await self._take(line, plain)

    async def _chunk(self) -> bytes:
        try:
            await _ready(anyio.wait_readable, self._input)
            return os.read(self._input, _CHUNK)
        except OSError:
            return b""

    async def _take(self, line: bytes | None, plain: PlainLines) -> None:
        if line is None:
            await self._refuse(INVALID_REQUEST, f"a message is longer than {MAX_LINE_BYTES} bytes")
        else:
            await plain.take(line)

    async def _refuse(self, code: int, message: str) -> None:
        error: JsonObject = {"code": code, "message": message}
        await self._send(encode({"jsonrpc": "2.0", "id": None, "error": error}))

    async def _send(self, message: bytes) -> None:
        async with self._writing:
            view = memoryview(message + b"\n")
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
    """Stop reading when SIGTERM or SIGINT comes, and end all at the second.

    Signals reach the main thread only; in another one this does nothing.
    """
    if current_thread() is not main_thread():
        yield
        return
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
