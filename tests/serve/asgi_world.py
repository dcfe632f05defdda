"""The application of a server over HTTP, spoken to without a socket."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from fast_agent.serve.connections import DEPARTURE, DisconnectMonitor
from fast_agent.serve.http import http_app

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fast_agent.serve.resource_server import ResourceServer

PORT = 8000
VERSION = "2025-11-25"
HELLO: dict[str, Any] = {
    "protocolVersion": VERSION,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
PROGRESS = {"progressToken": 1}
"""An entry of `_meta` that makes the answer to a call a stream."""
MODERN = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What it says: a body, or the last event of a stream."""
        if self.body[:1] == b"{":
            return json.loads(self.body)
        return json.loads([one for one in self.body.splitlines() if one[:5] == b"data:"][-1][5:])


class AsgiWorld:
    """A client of the application."""

    def __init__(self, app: ASGIApp, address: str = "127.0.0.1") -> None:
        self._app = app
        self._address = address
        self.headers: dict[str, str] = {}

    def other(self, address: str) -> AsgiWorld:
        """Another client of the same application."""
        return AsgiWorld(self._app, address)

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        request_id: int | None = 1,
        *,
        more: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a message; the session that an answer names is that of the messages after it."""
        reply = await self.ask("POST", self.message(method, params, request_id), more=more)
        if "mcp-session-id" in reply.headers:
            self.headers["mcp-session-id"] = reply.headers["mcp-session-id"]
            self.headers["mcp-protocol-version"] = VERSION
        return reply

    def message(
        self, method: str, params: Mapping[str, Any] | None = None, request_id: int | None = 1
    ) -> bytes:
        """Write a message."""
        reported = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        return json.dumps(
            reported if request_id is None else {**reported, "id": request_id}
        ).encode()

    async def begin(self, capabilities: Mapping[str, Any] | None = None) -> Reply:
        """Shake hands."""
        reply = await self.send("initialize", {**HELLO, "capabilities": dict(capabilities or {})})
        await self.send("notifications/initialized", request_id=None)
        return reply

    async def modern(
        self,
        method: str,
        name: str = "",
        params: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Send a request of the newest protocol."""
        headers = {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": name}
        return await self.send(
            method, {**(params or {}), "_meta": {**META, **(meta or {})}}, more=headers
        )

    async def ask(
        self,
        verb: str,
        body: bytes = b"",
        *,
        more: Mapping[str, str] | None = None,
        path: str = "/mcp",
    ) -> Reply:
        async with self.stream(verb, body, more=more, path=path) as stream:
            await stream.ended.wait()
            return stream.reply

    @asynccontextmanager
    async def stream(
        self,
        verb: str,
        body: bytes = b"",
        *,
        more: Mapping[str, str] | None = None,
        path: str = "/mcp",
    ) -> AsyncGenerator[Stream]:
        """Send a request and leave at the end of the block."""
        headers = {
            "host": f"127.0.0.1:{PORT}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self.headers,
            **(more or {}),
        }
        stream = Stream(body)
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": verb,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (self._address, 1),
            "server": ("127.0.0.1", PORT),
            "extensions": {DEPARTURE: stream.departure},
        }
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run, self._app, scope, stream.receive, stream.take)
            yield stream
            stream.departure.come()


class Stream:
    """An answer on its way."""

    def __init__(self, body: bytes) -> None:
        self._waiting: list[Message] = [{"type": "http.request", "body": body}]
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = b""
        self._more = anyio.Event()
        self.departure = DisconnectMonitor()
        self.ended = anyio.Event()

    @property
    def reply(self) -> Reply:
        """What came so far."""
        return Reply(self._status, self._headers, self._body)

    async def receive(self) -> Message:
        return self._waiting.pop()

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode(): text.decode() for name, text in message["headers"]}
        else:
            assert not self.ended.is_set()
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                self.ended.set()
        self._more.set()

    async def started(self) -> None:
        """Wait until the head of the answer has come."""
        with anyio.fail_after(60):
            while not self._status:
                self._more = anyio.Event()
                await self._more.wait()

    async def until(self, text: bytes) -> None:
        """Wait until a text has come."""
        with anyio.fail_after(60):
            while text not in self._body:
                self._more = anyio.Event()
                await self._more.wait()


async def _run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


@asynccontextmanager
async def open_app(server: ResourceServer) -> AsyncGenerator[AsgiWorld]:
    """Hold the application of a server open."""
    app = http_app(server)
    closing, started, ended = anyio.Event(), anyio.Event(), anyio.Event()
    waiting = [closing, started]

    async def receive() -> Message:
        if len(waiting) == 2:
            waiting.pop()
            return {"type": "lifespan.startup"}
        await closing.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Message) -> None:
        (started if message["type"] == "lifespan.startup.complete" else ended).set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_run, app, {"type": "lifespan"}, receive, send)
        await started.wait()
        try:
            yield AsgiWorld(app)
        finally:
            closing.set()
            with anyio.CancelScope(shield=True), anyio.fail_after(60):
                await ended.wait()
