"""A server over stdio: one client, whose messages are lines."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

import anyio

from fast_agent.errors import FastAgentError, ResourceError
from fast_agent.rpc.lines import take_stdio
from fast_agent.rpc.message import INTERNAL_ERROR, RpcError, notification_message
from fast_agent.rpc.peer import Peer
from fast_agent.serve.agent_drain import CANCEL_GRACE_SECONDS
from fast_agent.serve.notification_queue import NotificationQueue
from fast_agent.serve.resource_server import INITIALIZE, rpc_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from fast_agent.rpc.message import Request
    from fast_agent.rpc.peer import Work
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.text.json_value import JsonObject

_OWNER = "stdio"


class StdioEdge:
    """One client over two descriptors.

    Args:
        input_fd: Where messages are read.
        output_fd: Where messages are written.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._peer = Peer(
            input_fd,
            output_fd,
            cancel_method="notifications/cancelled",
            announces=True,
            waits=True,
        )

    async def serve(self, server: ResourceServer) -> None:
        """Answer until the input ends or `stop`; calls then have `grace_seconds` to end."""
        mailbox = NotificationQueue()
        client = StdioClient(server, self._peer, mailbox)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.stream, mailbox, client)
            try:
                await self._peer.serve(client, partial(self._drain, server))
            finally:
                with anyio.CancelScope(shield=True):
                    await client.close()
            tasks.cancel_scope.cancel()

    def stop(self) -> None:
        """Read no more."""
        self._peer.stop()

    async def _drain(self, server: ResourceServer) -> None:
        server.end_streams()
        with anyio.move_on_after(server.grace_seconds):
            await self._peer.calls.idle()
        if self._peer.calls:
            server.cancel_all()
        with anyio.move_on_after(CANCEL_GRACE_SECONDS):
            await self._peer.calls.idle()


class StdioClient:
    """What answers the client: the side of its peer, and the channel of its requests.

    Args:
        server: Answers.
        peer: The client.
        mailbox: Collects notifications that belong to no request.
    """

    owner = _OWNER

    def __init__(self, server: ResourceServer, peer: Peer, mailbox: NotificationQueue) -> None:
        self._server = server
        self._peer = peer
        self._session = server.service.open(mailbox.put)
        self._opened = anyio.Event()

    def accept(self, request: Request, scope: anyio.CancelScope) -> Work:  # noqa: ARG002
        """Accept a request; see `Side.accept`."""
        self._server.admit(self._session, request)
        if request.method == INITIALIZE:
            return self._handshake(request)
        return partial(self._answer, request)

    def cancelled(self, request: Request) -> None:
        """Leave a request that was cancelled without an answer, as the protocol has it."""

    def notice(self, method: str, params: JsonObject) -> None:
        """Handle a notification: those of the protocol ask nothing of a server."""

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification; see `Channel.notify`."""
        self._peer.send_raw(notification_message(method, params))
        await self._peer.room()

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request; see `Channel.request`."""
        return await self._peer.request(method, params)

    async def close(self) -> None:
        """Close the client's session."""
        await self._server.close(self._session)

    def _handshake(self, request: Request) -> Work:
        """Answer at once, since what is pipelined behind it may not come before it."""
        try:
            answer = self._server.service.call(self._session, request.method, request.params)
        except ResourceError as problem:
            raise rpc_error(problem, self._session) from None

        async def work() -> bytes:
            try:
                await self._server.open(self._session, request.params)
            except FastAgentError as problem:
                raise RpcError(INTERNAL_ERROR, problem.message) from None
            finally:
                self._opened.set()
            return answer.json

        return work

    async def _answer(self, request: Request) -> bytes:
        if self._session.era == "handshake" and self._session.protocol is not None:
            await self._opened.wait()
        return await self._server.serve(self._session, request, self)


@contextmanager
def own_stdio() -> Generator[StdioEdge]:
    """Take standard input and output for messages alone.

    Any other output during that time goes to standard error, and any other input is empty.
    """
    own_input, own_output = take_stdio()
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
