"""Streamable HTTP for a resource server: its settings, its socket and its application."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
from asyncio import BufferedProtocol, get_running_loop
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from fast_agent.errors import ConfigError, RunError, os_reason
from fast_agent.serve.connections import ConnectionLimits, Connections, LimitedLog
from fast_agent.serve.http_access import AccessPolicy

if TYPE_CHECKING:
    from asyncio import BaseProtocol
    from collections.abc import Callable, Generator
    from types import FrameType

    from starlette.types import ASGIApp

    from fast_agent.serve.http_access import HttpSettings
    from fast_agent.serve.resource_server import ResourceServer


MCP_PATH = "/mcp"
_MIN_TOKEN = 16
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


_BACKLOG = 4096
"""Clients that may wait to be accepted; one that finds no room tries again after a second."""
_CHECK_SECONDS = 1.0
_PAUSE_SECONDS = 0.05
_MAX_UNSENT = 1 << 14
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the system says when it is out of descriptors or memory."""


def read_token(path: str) -> str:
    """Read the token of a file: its first line.

    Raises:
        ConfigError: The file cannot be read, or holds no token worth its name.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"the token file `{path}` cannot be read: {reason}") from None
    token = lines[0].strip() if lines else ""
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"token file `{path}` must start with a token of at least {_MIN_TOKEN} characters",
            hint="generate one with `openssl rand -hex 32`",
        )
    return token


def open_socket(settings: HttpSettings) -> socket.socket:
    """Listen at the address.

    Raises:
        ConfigError: It is not this machine's, its port is taken, or other machines could come in
            without a token.
    """
    if not settings.loopback and settings.token is None:
        raise ConfigError(
            f"`{settings.host}` accepts connections from other machines, but no token is set",
            hint="pass `--token-file FILE`, or use `--host 127.0.0.1`",
        )
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, _, _, address = found[0]
        # Named TCP, asyncio sends small answers at once; with protocol 0 each waits 40 ms.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1024)
        except OSError:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise ConfigError(
            f"cannot listen on `{settings.host}:{settings.port}`: {_reason(error)}",
            hint="use another `--port`, or 0 for any free port" if taken else None,
        ) from None
    return listening


def _reason(error: OSError | OverflowError) -> str:
    return os_reason(error) if isinstance(error, OSError) else str(error).lower()


def http_app(server: ResourceServer) -> ASGIApp:
    """Return the application that answers at `MCP_PATH`; access is checked in front of it."""
    from fast_agent.serve.http_app import HttpApp

    return HttpApp(server, MCP_PATH)


async def serve_http(
    server: ResourceServer,
    settings: HttpSettings,
    listening: socket.socket,
    limits: ConnectionLimits | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM comes.

    Args:
        server: Answers.
        settings: Whom to let in.
        listening: From `open_socket`; closed at the end.
        limits: What clients may take; None for limits that fit this process.

    Raises:
        RunError: A task that the server needs has failed.
    """
    import anyio
    import uvicorn

    from fast_agent.serve.http_protocol import HttpProtocol

    access = AccessPolicy(settings, listening.getsockname()[1])
    listener = Listener(
        listening, limits or ConnectionLimits.of_process(), has_token=settings.token is not None
    )

    class Stoppable(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
            """Open the application, then listen."""
            await self.lifespan.startup()
            self.servers = [listener]  # type: ignore[list-item]
            tasks.start_soon(listener.run, self._connect)
            self.started = True

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """End in good order, instead of dying of the signal once all is done."""
            # Outside the main thread there are none: the caller's cancellation ends it.
            taken = _SIGNALS if current_thread() is main_thread() else ()
            before = {one: signal.signal(one, self.handle_exit) for one in taken}
            try:
                yield
            finally:
                for one, handler in before.items():
                    signal.signal(one, handler)

        async def on_tick(self, counter: int) -> bool:
            """Return whether the server ends, which it does when its application has failed."""
            return await super().on_tick(counter) or self.lifespan.error_occurred

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            server.end_streams()
            server.stop(partial(self._end, sig, frame))

        def _connect(self) -> HttpProtocol:
            return HttpProtocol(
                self.config,
                self.server_state,
                self.lifespan.state,
                connections=listener.connections,
                access=access,
                log=listener.log,
            )

        def _end(self, sig: int, frame: FrameType | None, seconds: float) -> None:
            self.config.timeout_graceful_shutdown = ceil(seconds)
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        http_app(server),
        http=HttpProtocol,
        log_level="warning",
        access_log=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ws="none",
        lifespan="on",  # "auto" would ignore an application that fails while it serves
        server_header=False,
        timeout_graceful_shutdown=ceil(server.grace_seconds),
    )
    serving = Stoppable(config)
    with listening:
        async with anyio.create_task_group() as tasks:
            await serving.serve()
            tasks.cancel_scope.cancel()
    if serving.lifespan.error_occurred:
        raise RunError("the server ended: one of its tasks failed, as logged above")


class Listener:
    """Accepts the connections of a listening socket.

    Args:
        listening: The socket; closed once no more connections are accepted.
        limits: What clients may take.
        has_token: Whether clients must send a token.

    Attributes:
        connections: The open connections.
        log: Logs what goes wrong on the network, at most a line a second.
    """

    def __init__(
        self, listening: socket.socket, limits: ConnectionLimits, *, has_token: bool
    ) -> None:
        self.connections = Connections(limits, has_token=has_token)
        self.log = LimitedLog(
            logging.getLogger(__name__).warning, lambda: get_running_loop().time()
        )
        self._listening = listening
        self._scope = anyio.CancelScope()
        self._reserve: int | None = None

    async def run(self, new_protocol: Callable[[], BaseProtocol]) -> None:
        """Accept connections until `close`, and check them until cancelled.

        Args:
            new_protocol: Creates the protocol of a connection.
        """
        self._listening.setblocking(False)
        self._listening.listen(_BACKLOG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._check)
            with self._scope:
                try:
                    while True:
                        await self._accept(new_protocol)
                finally:
                    self._drop_reserve()
                    self._listening.close()

    def close(self) -> None:
        """Accept no more connections; those that are open stay."""
        self._scope.cancel()

    async def wait_closed(self) -> None:
        """Return at once: nothing is left to wait for."""

    async def _accept(self, new_protocol: Callable[[], BaseProtocol]) -> None:
        loop = get_running_loop()
        self._take_reserve()
        # Without a descriptor left, `accept` fails even if no client is waiting.
        await anyio.wait_readable(self._listening)
        try:
            connection, _ = self._listening.accept()
        except (ConnectionError, BlockingIOError):
            return  # the client left before it was accepted
        except OSError as error:
            self.log(f"cannot accept a connection: {os_reason(error)}")
            if error.errno not in _NO_ROOM:
                await anyio.sleep(_PAUSE_SECONDS)
            elif not self.connections.end_most_silent():
                await self._reject_next()
            await checkpoint()  # an ended connection returns its descriptor in a later step
            return
        _limit_unsent(connection)
        try:
            await loop.connect_accepted_socket(
                lambda: _BufferedProtocol(new_protocol()), connection
            )
        except OSError:
            connection.close()

    async def _reject_next(self) -> None:
        """Accept a connection with the reserved descriptor and close it at once."""
        if self._reserve is None:
            await anyio.sleep(_PAUSE_SECONDS)
            return
        self._drop_reserve()
        with suppress(OSError):
            connection, _ = self._listening.accept()
            connection.close()

    def _take_reserve(self) -> None:
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY)

    def _drop_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None

    async def _check(self) -> None:
        """End connections that are silent for too long, once a second."""
        while True:
            await anyio.sleep(_CHECK_SECONDS)
            self.connections.check(get_running_loop().time())


class _BufferedProtocol(BufferedProtocol):
    """A protocol that reads into its own buffers, as the transport of its connection sees it.

    uvloop ignores the buffers of a protocol that is an `asyncio.Protocol` too, as the protocols of
    the HTTP server are.
    """

    def __init__(self, protocol: BaseProtocol) -> None:
        for name in _TRANSPORT_CALLS:
            setattr(self, name, getattr(protocol, name))


_TRANSPORT_CALLS: Final = (
    "connection_made",
    "connection_lost",
    "get_buffer",
    "buffer_updated",
    "eof_received",
    "pause_writing",
    "resume_writing",
)


def _limit_unsent(connection: socket.socket) -> None:
    """Limit how much of an answer the system buffers before the client reads it.

    It would take megabytes of answers to a client that reads none.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, option, _MAX_UNSENT)
