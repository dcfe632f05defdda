"""The SDK's lines: what clients over stdio say that only the SDK does, such as to be asked.

The SDK is imported when the first such line comes, in another thread, since that takes longer than
all else at the start of a server. It is then told how the client opened, and never notices that it
was not there before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread

from fast_agent.rpc.message import INVALID_REQUEST, PARSE_ERROR
from fast_agent.serve.plain_sessions import HANDED_ON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

    from fast_agent.serve.open_requests import OpenRequests
    from fast_agent.serve.plain_sessions import PlainSession
    from fast_agent.serve.resource_server import ResourceServer

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Outgoing = MemoryObjectReceiveStream[SessionMessage]

_SDK = (
    "pydantic",
    "mcp_types",
    "mcp_types.methods",
    "mcp.server.lowlevel",
    "fast_agent.serve.agent_client",
)
"""What the SDK serves streams with: in pieces, between which a server can end."""

_READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_MOST_WAITING = 16


class Opening(NamedTuple):
    """How a client opened before it came to the SDK.

    Args:
        line: With what.
        session: The session of a handshake; None where it opened without one.
    """

    line: bytes
    session: PlainSession | None


class _Note(NamedTuple):
    """What is noted on a request, where an ASGI request has it; see `request_note`."""

    scope: dict[str, object]


class SdkLines:
    """Hands lines of one client to the SDK.

    Args:
        server: The server whose SDK it is.
        tasks: Where the SDK runs.
        requests: Counts the client's requests.
        send: Sends a message.
        refuse: Sends that a line is no message: a code, and why.

    Attributes:
        begun: Whether the SDK knows of the client, or soon will.
    """

    def __init__(
        self,
        server: ResourceServer,
        tasks: TaskGroup,
        requests: OpenRequests,
        send: Callable[[bytes], Awaitable[None]],
        refuse: Callable[[int, str], Awaitable[None]],
    ) -> None:
        self._server = server
        self._tasks = tasks
        self._requests = requests
        self._send = send
        self._refuse = refuse
        self._lines, self._waiting = anyio.create_memory_object_stream[bytes](_MOST_WAITING)
        self._note: _Note | None = None
        self._told: int | str | None = None
        self._knows = anyio.Event()
        self._ending = False
        self._ended = anyio.Event()
        self.begun = False

    def begin(self, opening: Opening | None) -> None:
        """Have the SDK take lines, if it does not yet.

        Args:
            opening: What it is told first; None where the client has said nothing before.
        """
        if not self.begun:
            self.begun = True
            self._tasks.start_soon(self._run, opening)

    async def take(self, line: bytes) -> None:
        """Hand a line on, after `begin`."""
        self._requests.add()  # until the SDK has it
        await self._lines.send(line)

    async def end(self) -> None:
        """Hand nothing more on, and let the SDK end."""
        self._ending = True
        self._lines.close()
        if self.begun:
            await self._ended.wait()

    async def _run(self, opening: Opening | None) -> None:
        for name in _SDK:
            if self._ending:
                break
            await to_thread.run_sync(import_module, name)
        else:
            await self._serve(opening)
        self._ended.set()

    async def _serve(self, opening: Opening | None) -> None:
        from mcp.shared.message import SessionMessage

        incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_all, outgoing)
            tasks.start_soon(self._pass_on, incoming, opening)
            options = self._server.sdk.create_initialization_options()
            await self._server.sdk.run(read_stream, write_stream, options)
            tasks.cancel_scope.cancel()

    async def _pass_on(self, incoming: Incoming, opening: Opening | None) -> None:
        async with incoming, self._waiting:
            if opening is not None:
                await self._tell(incoming, opening)
            async for line in self._waiting:
                await self._take(line, incoming)
                self._requests.settle()

    async def _tell(self, incoming: Incoming, opening: Opening) -> None:
        """Tell the SDK how the client opened, which has its answer already."""
        import mcp_types as types

        session = opening.session
        if session is not None:
            self._note = _Note({HANDED_ON: session})
        message = types.jsonrpc_message_adapter.validate_json(opening.line, by_name=False)
        if isinstance(message, types.JSONRPCRequest):
            self._told = message.id
            await self._take(opening.line, incoming)
            await self._knows.wait()
        if session is not None and session.ready:
            await self._take(_READY, incoming)

    async def _take(self, line: bytes, incoming: Incoming) -> None:
        import mcp_types as types
        from mcp.shared.message import ServerMessageMetadata, SessionMessage
        from pydantic import ValidationError

        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            if all(one["type"] != "json_invalid" for one in error.errors()):
                await self._refuse(INVALID_REQUEST, "the message is none of JSON-RPC 2.0")
            else:
                await self._refuse(PARSE_ERROR, "the message is no JSON")
            return
        if isinstance(message, types.JSONRPCRequest):
            self._requests.add()
        elif _calls_off(message):
            self._requests.settle()  # it is not answered
        metadata = ServerMessageMetadata(request_context=self._note)
        await incoming.send(SessionMessage(message, metadata))

    async def _write_all(self, outgoing: Outgoing) -> None:
        import mcp_types as types

        async with outgoing:
            async for one in outgoing:
                message = one.message
                answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
                if answer and self._told is not None and message.id == self._told:
                    self._told = None
                    self._knows.set()
                else:
                    data = message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._send(data.encode())
                if answer:
                    self._requests.settle()


def _calls_off(message: JSONRPCMessage) -> bool:
    return getattr(message, "method", None) == "notifications/cancelled"
