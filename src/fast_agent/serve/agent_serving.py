"""Serving agents: from a loaded program to a server that runs until it is stopped.

Over stdio the server has one client, whose messages are lines.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import field
from functools import partial
from threading import current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Literal

import anyio

from fast_agent.errors import FastAgentError, ResourceError
from fast_agent.resources.service import ServerInfo
from fast_agent.rpc.message import INTERNAL_ERROR, RpcError, notification_message, take_stdio
from fast_agent.rpc.peer import Peer
from fast_agent.serve.agent_generation import CANCEL_GRACE_SECONDS, Generations
from fast_agent.serve.agent_scopes import ConversationPool, ScopeLimits
from fast_agent.serve.agent_server import SERVER_NAME, AdminTools, AgentServer, ServedResources
from fast_agent.serve.http import MCP_PATH, open_socket, serve_http
from fast_agent.serve.http_access import HttpSettings
from fast_agent.serve.resource_server import INITIALIZE, NotificationQueue, rpc_error
from fast_agent.text.frozen import frozen
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path
    from socket import socket

    from fast_agent.cards.agent_config import ChildHistory, FileAccess
    from fast_agent.program.program import Program
    from fast_agent.registry.reload import Reload
    from fast_agent.rpc.message import Request
    from fast_agent.rpc.peer import Work
    from fast_agent.serve.agent_scopes import InstanceScope
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.sessions.store import SessionStore
    from fast_agent.text.json_value import JsonObject


log = logging.getLogger(__name__)

_CLOSING_SECONDS = 15.0
"""How long agents and their servers may take to close."""


@frozen(kw_only=True)
class ServeOptions:
    """How agents are served.

    Args:
        transport: How clients connect.
        http: Where to listen, and who is let in.
        scope: Who shares a conversation.
        description: The server's description for clients' models.
        watch: Take changed cards as soon as they change.
        reload: Offer the tool `reload`.
        allow_load: Directories below which the tool `load_agents` may load cards; none offers no
            such tool.
        trust: Whether cards that clients load may bring code.
        model: The model of every agent, over their cards.
        shell: Whether every agent may run commands.
        files: What every agent may do with files of the workspace; None leaves it to the cards.
        fetch: Whether every agent may fetch web pages.
        child_history: What called agents start with and where their messages go, over the cards.
        sessions: Where conversations are kept as sessions; None keeps them in memory only.
        resources: Resources and tools to serve in addition to the agents.
        limits: How many conversations are held for clients without connections, and how long.
        grace_seconds: How long calls may take to end once the server is asked to stop.
    """

    transport: Literal["http", "stdio"] = "http"
    http: HttpSettings = field(default_factory=HttpSettings)
    scope: InstanceScope = "connection"
    description: str | None = None
    watch: bool = False
    reload: bool = False
    allow_load: tuple[str | Path, ...] = ()
    trust: bool = False
    model: str | None = None
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    child_history: ChildHistory | None = None
    sessions: SessionStore | None = None
    resources: ServedResources | None = None
    limits: ScopeLimits = field(default_factory=ScopeLimits)
    grace_seconds: float = 10.0


def new_session_id() -> str:
    """Return an unguessable id."""
    return secrets.token_urlsafe(24)


@asynccontextmanager
async def open_server(
    program: Program,
    options: ServeOptions,
    *,
    notify: Callable[[str], None] = log.warning,
    clock: Callable[[], float] = monotonic,
    new_id: Callable[[], str] = new_session_id,
) -> AsyncGenerator[AgentServer]:
    """Make agents live, and hold a server of them open.

    Args:
        program: The agents, loaded.
        options: How they are served.
        notify: Called with each line a user should see.
        clock: Seconds that never go back.
        new_id: Returns unguessable ids.

    Raises:
        FastAgentError: The agents or the configuration are wrong.
    """
    start = partial(
        program.run,
        model=options.model,
        shell=options.shell,
        files=options.files,
        fetch=options.fetch,
        trust_cards=options.trust,
        child_history=options.child_history,
        notify=notify,
        grows=True,
        partial_set=True,
    )
    refused: FastAgentError | None = None
    async with anyio.create_task_group() as tasks:
        generations = Generations(
            tasks, start, lambda: program.snapshot.version, follow=options.scope != "connection"
        )
        try:
            await generations.newest()
        except FastAgentError as error:  # what leaves a task group is a group
            refused = error
        else:
            scopes = ConversationPool(
                options.scope,
                generations,
                store=options.sessions,
                workspace=program.workspace,
                clock=clock,
                new_id=new_id,
                limits=options.limits,
                redact=program.redact,
            )
            server = AgentServer(
                tasks,
                generations,
                scopes,
                AdminTools(program, options.allow_load, reload=options.reload, trust=options.trust),
                new_id=new_id,
                info=ServerInfo(SERVER_NAME, __version__, instructions=options.description),
                resources=options.resources,
                grace_seconds=options.grace_seconds,
            )
            try:
                watched = _watched(program, server, notify) if options.watch else nullcontext()
                async with watched:
                    yield server
            finally:
                with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                    await scopes.aclose()
                    await generations.aclose()
                tasks.cancel_scope.cancel()
    if refused is not None:
        raise refused


async def serve(
    program: Program,
    options: ServeOptions | None = None,
    *,
    ready: Callable[[str], None] = log.info,
    notify: Callable[[str], None] = log.warning,
) -> None:
    """Serve agents until the process receives a signal, or a client over stdio leaves.

    Args:
        program: The agents, loaded.
        options: How they are served.
        ready: Called with the address once clients may connect; not called over stdio.
        notify: Called with each line a user should see.

    Raises:
        ConfigError: The server cannot listen on the address.
        FastAgentError: The agents or the configuration are wrong.
    """
    options = options or ServeOptions()
    if options.transport == "stdio":
        with own_stdio() as edge:
            async with (
                stopped_by_signals(edge),
                open_server(program, options, notify=notify) as server,
            ):
                await edge.serve(server)
        return
    listening = open_socket(options.http)
    with listening:
        async with open_server(program, options, notify=notify) as server:
            ready(address_of(options.http, listening))
            server.import_models()
            await serve_http(server, options.http, listening)


def address_of(settings: HttpSettings, listening: socket) -> str:
    """Return the address clients connect to."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}{MCP_PATH}"


@asynccontextmanager
async def _watched(
    program: Program, server: AgentServer, notify: Callable[[str], None]
) -> AsyncGenerator[None]:
    """Take changed cards soon after they change."""
    loop = asyncio.get_running_loop()
    changed = [anyio.Event()]

    def take(done: Reload) -> None:
        if done.line is not None:
            notify(done.line)
        for one in done.problems:
            notify(f"{one.severity}: {one.path or ''}: {one.message}")
        if done.changed:
            changed[0].set()

    def on_reload(done: Reload) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(take, done)

    async def follow() -> None:
        while True:
            await changed[0].wait()
            changed[0] = anyio.Event()
            await server.cards_changed()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        with program.watch(on_reload) as watch:
            server.when_loaded(watch.look_after)
            yield
        tasks.cancel_scope.cancel()


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
