"""The SDK's client of a server in this process, over pipes as over standard input and output."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.client import Client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from fast_agent.rpc.message import Lines
from fast_agent.serve.agent_serving import StdioEdge

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from fast_agent.serve.resource_server import ResourceServer

    Read = MemoryObjectReceiveStream[SessionMessage | Exception]
    Write = MemoryObjectSendStream[SessionMessage]


def client_of(server: ResourceServer, **options: Any) -> Client:
    """A client, to be entered; options are those of the SDK's `Client`."""
    return Client(transport_to(server), **options)


@asynccontextmanager
async def transport_to(server: ResourceServer) -> AsyncGenerator[tuple[Read, Write]]:
    there, here = os.pipe(), os.pipe()
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def take() -> None:
        lines = Lines(1 << 30)
        async with incoming:
            while chunk := await _chunk(here[0]):
                for line in lines.feed(chunk):
                    message = jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
                    with suppress(anyio.BrokenResourceError):  # the client has left
                        await incoming.send(SessionMessage(message))

    async def put() -> None:
        async with outgoing:
            async for one in outgoing:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                data = text.encode() + b"\n"
                while data:
                    await anyio.wait_writable(there[1])
                    data = data[os.write(there[1], data[:4096]) :]
        os.close(there[1])

    async def serve() -> None:
        await StdioEdge(there[0], here[1]).serve(server)
        os.close(here[1])

    async with anyio.create_task_group() as tasks:
        for work in (take, put, serve):
            tasks.start_soon(work)
        try:
            yield read, write
        finally:
            write.close()
            read.close()
    for descriptor in (there[0], here[0]):
        os.close(descriptor)


async def _chunk(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    return os.read(descriptor, 1 << 16)
