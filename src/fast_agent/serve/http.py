"""Streamable HTTP for a resource server: who may connect, how much, and the socket."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import signal
import socket
from contextlib import contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from starlette.types import ASGIApp, Receive, Scope, Send

    from fast_agent.serve.resource_server import ResourceServer

MCP_PATH = "/mcp"
_MOST_BODY = 4 << 20
_MOST_CONNECTIONS = 2000
_SHORTEST_TOKEN = 16
_KEPT_ALIVE_SECONDS = 30
"""Longer than clients keep an unused connection, often 5 s: else one may ask as it is closed."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HttpSettings(NamedTuple):
    """How to listen.

    Args:
        host: The address.
        port: The port; 0 for any free one.
        token: What clients must bear; None lets in whoever reaches the address.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_token(path: str) -> str:
    """Read the token of a file: its first line.

    Raises:
        ConfigError: The file cannot be read, or holds no token worth its name.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(f"the token file `{path}` cannot be read: {reason}") from None
    token = lines[0].strip() if lines else ""
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"the token file `{path}` holds no token of {_SHORTEST_TOKEN} or more characters",
            hint="`openssl rand -hex 32` makes one",
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
            f"`{settings.host}` lets other machines in, and no token is asked of them",
            hint="give `--token-file FILE`, or listen on 127.0.0.1",
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
            f"`{settings.host}:{settings.port}` cannot be listened on: {_reason(error)}",
            hint="give another `--port`; with 0 any free one is taken" if taken else None,
        ) from None
    return listening


def _reason(error: OSError | OverflowError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def http_app(server: ResourceServer, settings: HttpSettings, port: int) -> ASGIApp:
    """Make the application that answers at `MCP_PATH`.

    Args:
        server: Answers.
        settings: Who may come in.
        port: The port that clients see.
    """
    from fast_agent.serve.sdk_app import SdkApp

    names = {"127.0.0.1", "localhost", "[::1]", f"[{settings.host}]", settings.host}
    # Where others come in, they bear a token, and may call the address what they like.
    hosts = [f"{name}:{port}" for name in sorted(names)] if settings.loopback else None
    sdk = SdkApp(server, MCP_PATH, hosts, _MOST_BODY, server.plain.look_after)
    app = server.app(sdk, MCP_PATH, hosts)
    return app if settings.token is None else BearerToken(app, settings.token)


class BearerToken:
    """Lets in only requests that bear a token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = b"bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 where the token is missing or wrong."""
        if scope["type"] == "http" and not self._bears(scope):
            from starlette.responses import JSONResponse

            refusal = JSONResponse(
                {"error": "a bearer token is needed"}, 401, {"WWW-Authenticate": "Bearer"}
            )
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _bears(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        kind, space, token = given[0].partition(b" ")
        return hmac.compare_digest(kind.lower() + space + token.strip(), self._expected)


async def serve_http(
    server: ResourceServer, settings: HttpSettings, listening: socket.socket
) -> None:
    """Serve until SIGINT or SIGTERM comes.

    Args:
        server: Answers.
        settings: Who may come in.
        listening: From `open_socket`; closed at the end.
    """
    import uvicorn

    from fast_agent.serve.http_protocol import HttpProtocol

    class Stoppable(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            """End in good order, instead of dying of the signal once all is done."""
            # In another thread than the main one there are none: whoever cancels it ends it.
            taken = _SIGNALS if current_thread() is main_thread() else ()
            before = {one: signal.signal(one, self.handle_exit) for one in taken}
            try:
                yield
            finally:
                for one, handler in before.items():
                    signal.signal(one, handler)

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            server.end_streams()
            server.stop(partial(self._end, sig, frame))

        def _end(self, sig: int, frame: FrameType | None, seconds: float) -> None:
            self.config.timeout_graceful_shutdown = ceil(seconds)
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        http_app(server, settings, listening.getsockname()[1]),
        http=HttpProtocol,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=_KEPT_ALIVE_SECONDS,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=ceil(server.grace_seconds),
    )
    with listening:
        await Stoppable(config).serve([listening])
