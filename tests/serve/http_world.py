"""The HTTP protocol over real sockets, in front of an application that answers on demand."""

from __future__ import annotations

import json
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from tests.patience import PATIENCE, until

from fast_agent.serve.connections import ConnectionLimits
from fast_agent.serve.http import Listener
from fast_agent.serve.http_access import AccessPolicy, HttpSettings
from fast_agent.serve.http_protocol import HttpProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

TOKEN = "a-token-of-some-length"


class Application:
    """Answers each request with what it was, at once or when it may."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.left = 0
        self.answer = b""
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        assert (first["type"], first["more_body"]) == ("http.request", False)
        asked = {
            "method": scope["method"],
            "path": scope["path"],
            "body": first["body"].decode("latin-1"),
            "headers": [name.decode() for name, _ in scope["headers"]],
        }
        self.asked.append(asked)
        body = self.answer or json.dumps(asked).encode()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, receive, tasks.cancel_scope)
            await self.may_answer.wait()
            headers = [(b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            tasks.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        message = await receive()
        assert message["type"] == "http.disconnect"
        if not self.may_answer.is_set():
            self.left += 1
        scope.cancel()


class HttpWorld:
    """A listener, its application, and clients that send what they like."""

    def __init__(self, limits: ConnectionLimits, settings: HttpSettings) -> None:
        self.app = Application()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listening.getsockname()[1]
        self.listener = Listener(self.listening, limits, has_token=settings.token is not None)
        self.connections = self.listener.connections
        self.lines: list[str] = []
        self.listener.log._log = self.lines.append
        self.protocols: list[HttpProtocol] = []
        self._access = AccessPolicy(settings, self.port)
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_config=None, ws="none"))
        self._server.config.load()
        self._clients: list[Client] = []

    def new_protocol(self) -> HttpProtocol:
        protocol = HttpProtocol(
            self._server.config,
            self._server.server_state,
            {},
            connections=self.connections,
            access=self._access,
            log=self.listener.log,
        )
        self.protocols.append(protocol)
        return protocol

    async def connect(self, *, accepted: bool = True) -> Client:
        count = len(self.protocols)
        stream = await anyio.connect_tcp("127.0.0.1", self.port)
        client = Client(stream)
        self._clients.append(client)
        if accepted:
            await until(lambda: len(self.protocols) > count)
            client.protocol = self.protocols[-1]
        return client

    def head(self, *lines: str, method: str = "POST", path: str = "/mcp") -> bytes:
        given = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *lines, "", ""]
        return "\r\n".join(given).encode("latin-1")

    def post(self, body: bytes = b"{}", *lines: str) -> bytes:
        return self.head(f"Content-Length: {len(body)}", *lines) + body

    async def close(self) -> None:
        for client in self._clients:
            await client.stream.aclose()
        await until(lambda: not self.connections)
        self.listening.close()


class Client:
    """One connection of a client."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self.protocol: HttpProtocol
        self._read = bytearray()

    async def send(self, *data: bytes) -> None:
        await self.stream.send(b"".join(data))

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read one answer that says its length."""
        while b"\r\n\r\n" not in self._read:
            await self._more()
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        size = int(headers.get("content-length", "0"))
        while len(self._read) < size:
            await self._more()
        body, self._read = bytes(self._read[:size]), self._read[size:]
        return int(first.split()[1]), headers, body

    async def status(self) -> int:
        return (await self.answer())[0]

    async def ended(self) -> bytes:
        """Wait for the end of the connection; return what came before it."""
        try:
            while True:
                await self._more()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            found, self._read = self._read, bytearray()
            return bytes(found)

    async def _more(self) -> None:
        with anyio.fail_after(PATIENCE):
            self._read += await self.stream.receive()


@asynccontextmanager
async def http_world(
    limits: ConnectionLimits | None = None, settings: HttpSettings | None = None
) -> AsyncGenerator[HttpWorld]:
    world = HttpWorld(limits or ConnectionLimits(), settings or HttpSettings())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.listener.run, world.new_protocol)
        try:
            yield world
        finally:
            with anyio.CancelScope(shield=True):
                world.app.may_answer.set()
                await world.close()
        tasks.cancel_scope.cancel()
