"""The SDK's application, which is made when a request needs it, or when there is time for that.

To import the SDK takes longer than all else at the start of a server. So the server listens
before, and what needs the SDK waits until it is there. It is imported in another thread.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from fast_agent.serve.plain_sessions import IDLE_SECONDS, MOST_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.types import ASGIApp, Receive, Scope, Send

    from fast_agent.serve.resource_server import ResourceServer

    Beside = Callable[[], Coroutine[None, None, None]]

_SDK = (
    "pydantic",
    "mcp_types",
    "mcp_types.methods",
    "httpx2",
    "starlette.applications",
    "mcp.server.lowlevel",
    "mcp.server.streamable_http_manager",
    "fast_agent.serve.agent_client",
)
"""What the SDK serves HTTP with, and what asks clients: in pieces, between which a server can end.
"""

_RESUMED = b"last-event-id"

PATIENCE_SECONDS = 0.5
"""How long after the start the SDK is imported though nothing needs it yet.

Clients often come at once, and what they say first is plain; two threads would take turns."""


class SdkApp:
    """An application that hands on to the SDK's.

    It is opened and closed by the server's lifespan messages.

    Args:
        server: The server whose SDK it is.
        path: Where MCP is served.
        beside: What runs as long as it is open.
    """

    def __init__(
        self,
        server: ResourceServer,
        path: str,
        beside: Beside | None = None,
    ) -> None:
        self._server = server
        self._path = path
        self._beside = beside
        self._app: ASGIApp | None = None
        self._wanted = anyio.Event()
        self._settled = anyio.Event()
        self._closing = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, once the SDK is there."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._settled.is_set():
            await self._hand_on(scope, receive, send)
            return
        self._wanted.set()
        noting = self._server.late(scope) if scope["method"] == "POST" else nullcontext(scope)
        with noting as noted:
            await self._settled.wait()
            await self._hand_on(noted, receive, send)

    async def _hand_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            raise RuntimeError("the server is closed")
        from starlette.requests import ClientDisconnect

        # Without a store of events there is nothing to resume: the stream is a fresh one.
        headers = [one for one in scope["headers"] if one[0] != _RESUMED]
        with suppress(ClientDisconnect):  # it may leave before it has sent all
            await self._app({**scope, "headers": headers}, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        async with anyio.create_task_group() as tasks:
            if self._beside is not None:
                tasks.start_soon(self._beside)
            async with anyio.create_task_group() as sdk:
                sdk.start_soon(self._run)
                await receive()
                self._closing.set()
                self._wanted.set()
            tasks.cancel_scope.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _run(self) -> None:
        try:
            with anyio.move_on_after(PATIENCE_SECONDS):
                await self._wanted.wait()
            for name in _SDK:
                if self._closing.is_set():
                    return
                await to_thread.run_sync(import_module, name)
            app = self._made()
            async with self._server.sdk.session_manager.run():
                self._app = app
                self._settled.set()
                await self._closing.wait()
        finally:
            self._app = None
            self._settled.set()

    def _made(self) -> ASGIApp:
        from mcp.server.transport_security import TransportSecuritySettings

        return self._server.sdk.streamable_http_app(
            streamable_http_path=self._path,
            json_response=not self._server.streams,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MOST_SESSIONS,
            # `Host` and `Origin` are checked in front of the application, see `AccessPolicy`.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
