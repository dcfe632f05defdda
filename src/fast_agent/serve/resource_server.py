"""The SDK edge: the SDK's low-level server in front of the resource service.

The SDK brings the transports (streamable HTTP, streams in memory) and settles which protocol a
client speaks. One middleware answers every request from the service, before the SDK looks at it,
so that this edge and the stdio edge say the same, and nothing is validated and copied three times.

The SDK is imported where it is first used, since that takes most of the time of a start: over HTTP
the plainest requests do without it.
"""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio import to_thread

from fast_agent.errors import ResourceError
from fast_agent.resources.era import MODERN_VERSIONS
from fast_agent.resources.opening import unknown_method
from fast_agent.resources.problem import RequestRefused, error_object
from fast_agent.resources.session import Session
from fast_agent.rpc.encoding import NOTHING, encode
from fast_agent.rpc.message import INTERNAL_ERROR
from fast_agent.serve.mailbox import Mailbox
from fast_agent.serve.open_sessions import OpenSessions
from fast_agent.serve.plain_sessions import PlainSessions, handed_on
from fast_agent.serve.request_note import note_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    import mcp_types as types
    from anyio.abc import TaskGroup
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.session import ServerSession
    from mcp.shared.dispatcher import Outbound
    from mcp.shared.exceptions import MCPError
    from starlette.types import ASGIApp, Scope

    from fast_agent.resources.answer import Answer
    from fast_agent.resources.service import ResourceService
    from fast_agent.serve.mailbox import Notification
    from fast_agent.serve.plain_sessions import PlainSession
    from fast_agent.text.json_value import JsonObject

    Context = ServerRequestContext[TaskGroup, Any]

MOST_STREAMS = 1000
"""Most `subscriptions/listen` streams of all clients together."""

_SESSION = "fast-agent session"
_LISTEN = "subscriptions/listen"
_LATE = "fast_agent.late"
_QUICK = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "logging/setLevel",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""What is answered in the event loop; the rest may hash files, search, or wait for a lock."""


class ResourceServer:
    """Serves a resource service with the SDK's transports.

    Args:
        service: Answers.

    Attributes:
        service: The same.
        sessions: Those of clients that opened with a handshake over HTTP before the SDK.
        plain: Those of clients that opened with a plain one.
    """

    streams = False
    """Whether requests are answered by streams that carry notifications before the answer."""

    grace_seconds = 2.0
    """How long requests may take to end once the server is asked to stop."""

    def __init__(self, service: ResourceService) -> None:
        self.service = service
        self.sessions = OpenSessions()
        self.plain = PlainSessions(self.farewell)
        self._streams: set[Mailbox] = set()
        self._late = 0

    @cached_property
    def sdk(self) -> Server[TaskGroup]:
        """The SDK's server: `run` it over streams, or mount its `streamable_http_app`."""
        from mcp.server.lowlevel import Server

        info = self.service.info
        sdk = Server(info.name, version=info.version, title=info.title, lifespan=_task_group)
        sdk.middleware = [self._serve]
        return sdk

    def app(self, sdk: ASGIApp, path: str) -> ASGIApp:
        """Put in front of the SDK's application what answers plain requests.

        Args:
            sdk: The SDK's application.
            path: Where MCP is served.
        """
        from fast_agent.serve.plain_requests import PlainRequests

        return PlainRequests(sdk, self, path)

    def stop(self, then: Callable[[float], None]) -> None:
        """Take the word to stop; for a signal's handler.

        Args:
            then: Ends the server, which has so many seconds left for requests under way.
        """
        then(self.grace_seconds)

    @contextmanager
    def late(self, scope: Scope) -> Generator[Scope]:
        """Take note of a request that waits for the SDK to be imported, until it is answered.

        Args:
            scope: What the headers of the request say.

        Yields:
            The same, with a mark for `came_late`.
        """
        self._late += 1
        try:
            yield {**scope, _LATE: True}
        finally:
            self._late -= 1

    async def welcome(self, session: Session, params: JsonObject) -> None:
        """Begin what a client that opened with a plain handshake has besides its session.

        Args:
            session: The client.
            params: Those of its `initialize`.

        Raises:
            FastAgentError: It cannot be begun.
        """

    async def farewell(self, session: Session) -> None:
        """End the session of a client that opened with a plain handshake."""
        await to_thread.run_sync(self.service.close, session)

    def end_streams(self) -> None:
        """Let every open `subscriptions/listen` stream end with its result."""
        for mailbox in self._streams:
            mailbox.close()

    async def _serve(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = cast("JsonObject", ctx.params or NOTHING)
        if ctx.request_id is None:
            self.notice(session_of(connection_of(ctx.session)), ctx.method, params)
            return await call_next(ctx)
        session: Session | None = None
        try:
            if ctx.protocol_version in MODERN_VERSIONS:
                if ctx.method == "initialize":  # over HTTP; in streams the SDK refuses it itself
                    raise unknown_method(ctx.method)
                if ctx.method == _LISTEN:
                    return await self._listen(ctx, params)
                session = Session(_no_send)
            else:
                session = self._session_of(ctx)
            answer = await self.answer(session, ctx, params)
        except ResourceError as problem:
            era = "modern" if session is None else session.era
            raise _mcp_error(error_object(problem, era)) from None
        except Exception:  # a task boundary: the server outlives a request it cannot answer
            from mcp.shared.exceptions import MCPError

            logging.getLogger(__name__).exception("could not answer `%s`", ctx.method)
            raise MCPError(INTERNAL_ERROR, "internal error") from None
        return _plain(answer.json) if answer is not None else {}

    def notice(self, session: Session | None, method: str, params: JsonObject) -> None:
        """Take a notification that the SDK handles too.

        Args:
            session: The client; None where it is not known.
            method: What it tells.
            params: More of that.
        """

    async def answer(self, session: Session, ctx: Context, params: JsonObject) -> Answer | None:
        """Answer a request; what follows the protocol in all else is settled.

        Args:
            session: The client.
            ctx: The request, and the way to its client.
            params: Its parameters.

        Raises:
            ResourceError: It cannot be answered.
        """
        ask = partial(self.service.answer, session, ctx.method, params, ctx.request_id)
        return ask() if ctx.method in _QUICK else await to_thread.run_sync(ask)

    def _session_of(self, ctx: Context) -> Session:
        """The session of a client that opened with a handshake."""
        connection, opened = connection_of(ctx.session), handed_on(ctx.request)
        session = session_of(connection) or self._open(ctx, connection, opened)
        if connection.session_id is not None and opened is None:
            self.sessions.see(connection.session_id, session)
        return session

    def _open(self, ctx: Context, connection: Connection, opened: PlainSession | None) -> Session:
        """Open a client's session, or take the one that it has opened before it came to the SDK."""
        if opened is not None:
            connection.state[_SESSION] = opened.session
            connection.exit_stack.callback(opened.leave_sdk)
            return opened.session
        mailbox = Mailbox()
        session = self.service.open(mailbox.put)
        scope = anyio.CancelScope()
        connection.state[_SESSION] = session
        connection.exit_stack.callback(scope.cancel)
        connection.exit_stack.push_async_callback(to_thread.run_sync, self.service.close, session)
        if connection.session_id is not None:  # before it is closed: what was pushed last, is first
            connection.exit_stack.callback(self.sessions.forget, connection.session_id)
        ctx.lifespan_context.start_soon(_deliver, mailbox, connection.outbound, scope)
        return session

    async def _listen(self, ctx: Context, params: JsonObject) -> HandlerResult:
        """Answer `subscriptions/listen`, whose notifications go out until the client leaves."""
        if len(self._streams) >= MOST_STREAMS:
            raise RequestRefused(INTERNAL_ERROR, f"there are {MOST_STREAMS} streams open already")
        mailbox = Mailbox()
        self._streams.add(mailbox)
        session = self.service.open(mailbox.put)

        async def send(notification: Notification) -> None:
            await ctx.session.send_notification(
                _typed(notification), related_request_id=ctx.request_id
            )

        last: list[Answer] = []
        try:
            await self.answer(session, ctx, params)
            await mailbox.deliver(send)
        finally:
            self._streams.discard(mailbox)
            with anyio.CancelScope(shield=True):
                ended = await to_thread.run_sync(self.service.close, session)
                last.extend(answer for _, answer in ended)
        return _plain(last[0].json)


@asynccontextmanager
async def _task_group(server: Server[TaskGroup]) -> AsyncGenerator[TaskGroup]:  # noqa: ARG001
    """Hold the tasks that send notifications; they end with the server."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


async def _deliver(mailbox: Mailbox, outbound: Outbound, scope: anyio.CancelScope) -> None:
    """Send notifications until the client goes.

    It lives as long as the client's session, so it holds nothing of the request that opened that.
    """

    async def send(notification: Notification) -> None:
        data = _typed(notification).model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            await outbound.notify(data["method"], data.get("params"))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            scope.cancel()  # the client has gone

    with scope:
        await mailbox.deliver(send)


def session_of(connection: Connection) -> Session | None:
    """The session of a connection that was opened by a handshake; None where there is none yet."""
    known = connection.state.get(_SESSION)
    return known if isinstance(known, Session) else None


def came_late(request: object) -> bool:
    """Whether a request the SDK hands on has waited for it; see `ResourceServer.late`."""
    return note_of(request, _LATE) is True


def connection_of(session: ServerSession) -> Connection:
    """The client's connection, which the SDK does not hand out but to its own."""
    return session._connection  # noqa: SLF001


def _typed(notification: Notification) -> types.ServerNotification:
    import mcp_types as types

    models: dict[str, type[types.ServerNotification]] = {
        "notifications/resources/updated": types.ResourceUpdatedNotification,
        "notifications/resources/list_changed": types.ResourceListChangedNotification,
        "notifications/tools/list_changed": types.ToolListChangedNotification,
        "notifications/prompts/list_changed": types.PromptListChangedNotification,
        "notifications/subscriptions/acknowledged": types.SubscriptionsAcknowledgedNotification,
    }
    return models[notification.method].model_validate(
        {"method": notification.method, "params": dict(notification.params)}
    )


def _plain(data: bytes) -> dict[str, Any]:
    """Make dicts and lists of JSON.

    The core's own may be tuples and read-only, and a client in this process gets what it is given.
    """
    return cast("dict[str, Any]", json.loads(data))


def _mcp_error(error: JsonObject) -> MCPError:
    from mcp.shared.exceptions import MCPError

    told = _plain(encode(error))
    return MCPError(told["code"], told["message"], told.get("data"))


def _no_send(method: str, params: JsonObject) -> None:
    """Pass over a notification to a client that opened no stream."""
