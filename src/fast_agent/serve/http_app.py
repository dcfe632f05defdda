"""The application that answers MCP over HTTP, for both eras of the protocol."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from logging import getLogger
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.errors import FastAgentError
from fast_agent.resources.problem import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from fast_agent.resources.session import (
    CAPABILITIES_KEY,
    VERSION_KEY,
    Session,
    unknown_method,
    unsupported,
)
from fast_agent.rpc.message import (
    CANCELLED,
    IN_USE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    InvalidMessageError,
    RemoteError,
    Request,
    Response,
    RpcError,
    error_message,
    notification_message,
    read_message,
    result_message,
)
from fast_agent.serve.connections import DEPARTURE
from fast_agent.serve.fair_share import owner_of
from fast_agent.serve.http_access import HEALTH_PATH
from fast_agent.serve.http_sessions import SESSION_ID, HttpSessions
from fast_agent.serve.resource_server import INITIALIZE, LISTEN, QUICK, rpc_error

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from starlette.types import Receive, Scope, Send

    from fast_agent.rpc.message import Message
    from fast_agent.serve.connections import DisconnectMonitor
    from fast_agent.serve.http_sessions import HttpSession
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.text.json_value import JsonObject

    Headers = Sequence[tuple[bytes, bytes]]

log = getLogger(__name__)

PING_SECONDS: Final = 15.0
"""Maximum silence of a stream, in seconds; then a comment keeps proxies from ending the stream."""

JSON: Final = b"application/json"
EVENTS: Final = b"text/event-stream"
_JSON_HEADER: Final = (b"content-type", JSON)
_EVENT_HEADERS: Final = (
    (b"content-type", EVENTS),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)
_LINE_SEPARATORS: Final = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)
"""What some clients take for the end of a line, and how JSON can be without."""

HEADER_MISMATCH: Final = -32020

_VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"
_NAMES: Final = {"resources/read": "uri", "tools/call": "name", "prompts/get": "name"}
"""Requests whose `Mcp-Name` header repeats one of their parameters."""
_HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
_STATUSES: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    -32022: 400,
    IN_USE: 409,
}
"""The HTTP status of an error, in the newest protocol; 200 for any other code."""
_UNWATCHED: Final = QUICK | {"tools/list", "prompts/list"}
"""Requests that end before their client could leave."""
_BASE64: Final = ("=?base64?", "?=")


class HttpAnswer:
    """An answer on its way, and the channel of its request.

    It becomes a stream when something is sent before the result, or the result takes long.

    Args:
        send: Takes the answer.
        owner: Who the client is.
        opened: Its session; None if it has none.
        streams: Whether it may become a stream.

    Attributes:
        silence: How many times `Silences` saw it silent; None where a silence is not broken.
    """

    __slots__ = ("_opened", "_send", "_sending", "_streaming", "_streams", "owner", "silence")

    def __init__(
        self, send: Send, owner: str, opened: HttpSession | None, *, streams: bool
    ) -> None:
        self.owner = owner
        self._send = send
        self._opened = opened
        self._streams = streams
        self._streaming = False
        self._sending: anyio.Lock | None = None
        self.silence: int | None = None

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification; see `Channel.notify`."""
        if self._streams:
            await self._event(notification_message(method, params))

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request; see `Channel.request`."""
        if not self._streams or self._opened is None:
            raise RemoteError("the client cannot be asked here")
        return await self._opened.pending.ask(method, params, self._event)

    async def stream(self, data: bytes = b"") -> None:
        """Become a stream if it is none yet, and send a part of it."""
        if self._sending is None:
            self._sending = anyio.Lock()
        async with self._sending:  # of two that send something, none may overtake the head
            if not self._streaming:
                await self._start(200, _EVENT_HEADERS)
                self._streaming = True  # not if it was cancelled while it waited to be sent
            if data:
                await self._body(data, more=True)
            if self.silence is not None:
                self.silence = 0

    async def comment(self) -> None:
        """Send a comment, unless the answer has ended or something is being sent."""
        is_sending = self._sending is not None and self._sending.locked()
        if self._streams and self.silence is not None and not is_sending:
            try:
                await self.stream(b": ping\r\n\r\n")
            except Exception:  # a task boundary: the other answers continue
                log.exception("cannot keep a stream open")

    async def finish(self, message: bytes, status: int = 200, headers: Headers = ()) -> None:
        """Send the answer's last message.

        Args:
            message: The message.
            status: The HTTP status, unless the answer is a stream by now.
            headers: More headers, unless the answer is a stream by now.
        """
        async with self._sending or nullcontext():  # a comment may be on its way
            if self._streaming:
                await self._body(_event_of(message))
                return
            length = (b"content-length", b"%d" % len(message))
            await self._start(status, (_JSON_HEADER, length, *headers))
            await self._body(message)

    async def send_nothing(self, status: int) -> None:
        """Send an answer without a body."""
        await self._start(status, (_JSON_HEADER, (b"content-length", b"0")))
        await self._body(b"")

    async def end(self) -> None:
        """End a stream that has no last message."""
        await self._body(b"")

    async def _event(self, message: bytes) -> None:
        await self.stream(_event_of(message))

    async def _start(self, status: int, headers: Headers) -> None:
        if self._opened is not None:
            headers = [*headers, (SESSION_ID, self._opened.name)]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _body(self, data: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class Silences:
    """Breaks each long silence of the answers that are under way by a comment.

    Attributes:
        waiting: These answers.
    """

    def __init__(self) -> None:
        self.waiting: set[HttpAnswer] = set()

    @contextmanager
    def broken(self, to: HttpAnswer) -> Generator[None]:
        """Break the silences of an answer as long as the block lasts."""
        to.silence = 0
        self.waiting.add(to)
        try:
            yield
        finally:
            self.waiting.discard(to)
            to.silence = None

    async def run(self) -> None:
        """Send the comments until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.sleep(PING_SECONDS / 2)
                for to in tuple(self.waiting):
                    if to.silence:
                        tasks.start_soon(to.comment)
                    elif to.silence is not None:
                        to.silence += 1


class HttpApp:
    """An ASGI application. The extension `DEPARTURE` of a scope reports that a client has left.

    Args:
        server: Answers.
        path: Where MCP is served.
    """

    def __init__(self, server: ResourceServer, path: str) -> None:
        self._server = server
        self._path = path
        self._paths = frozenset({path, f"{path}/"})
        self.sessions = HttpSessions(server)
        self.silences = Silences()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        exchange = _Exchange(self, self._server, scope, receive, send)
        if scope["path"] == HEALTH_PATH:
            await exchange.report_health()
        elif scope["path"] not in self._paths:
            text = f"nothing is served at this path; try `{self._path}`"
            await exchange.refuse(_RejectedError(404, RpcError(INVALID_REQUEST, text)))
        else:
            await exchange.answer()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.sessions.look_after)
            tasks.start_soon(self.silences.run)
            await receive()
            tasks.cancel_scope.cancel()
        await send({"type": "lifespan.shutdown.complete"})


class _RejectedError(Exception):
    """A request that gets no further.

    Args:
        status: The HTTP status.
        problem: Why.
        headers: More headers of the answer.
    """

    def __init__(self, status: int, problem: RpcError, headers: Headers = ()) -> None:
        super().__init__(problem.message)
        self.status = status
        self.problem = problem
        self.headers = headers


class _Exchange:
    """One request over HTTP."""

    __slots__ = (
        "_departure",
        "_headers",
        "_method",
        "_receive",
        "_scope",
        "_send",
        "_server",
        "_sessions",
        "_silences",
    )

    def __init__(
        self, app: HttpApp, server: ResourceServer, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._server = server
        self._sessions = app.sessions
        self._silences = app.silences
        self._departure: DisconnectMonitor = scope["extensions"][DEPARTURE]
        self._scope = scope
        self._receive = receive
        self._send = send
        self._method: str = scope["method"]
        self._headers: dict[bytes, bytes] = dict(scope["headers"])

    @property
    def _owner(self) -> str:
        client = self._scope["client"]
        return owner_of(client[0]) if client else ""

    async def answer(self) -> None:
        """Answer it, as its headers say: in the newest protocol, or in a session."""
        version = self._headers.get(_VERSION)
        try:
            if version is not None and version not in _HANDSHAKE:
                await self._answer_modern(version)
            else:
                await self._answer_handshake()
        except _RejectedError as refused:
            await self.refuse(refused)

    async def report_health(self) -> None:
        """Answer whether the server takes calls, to what distributes them among several servers."""
        if self._method not in {"GET", "HEAD"}:
            await self.refuse(_not_allowed("GET, HEAD"))
        elif self._server.stopping:
            await self._answer_to(None).finish(b'{"status":"stopping"}', 503)
        else:
            await self._answer_to(None).finish(b'{"status":"ok"}')

    async def refuse(self, refused: _RejectedError, opened: HttpSession | None = None) -> None:
        """Refuse it."""
        problem = refused.problem
        number = problem.request_id if isinstance(problem, InvalidMessageError) else None
        message = error_message(number, problem.wire)
        await self._answer_to(opened).finish(message, refused.status, refused.headers)

    def _answer_to(self, opened: HttpSession | None, *, streams: bool = False) -> HttpAnswer:
        return HttpAnswer(self._send, self._owner, opened, streams=streams)

    # Sessions.

    async def _answer_handshake(self) -> None:
        name = self._headers.get(SESSION_ID)
        opened = None if name is None else self._sessions.find(name)
        if name is not None and opened is None:
            raise _RejectedError(404, RpcError(INVALID_REQUEST, "Session not found"))
        try:
            with nullcontext() if opened is None else self._sessions.used(opened):
                await self._answer_in(opened)
        except _RejectedError as refused:
            await self.refuse(refused, opened)

    async def _answer_in(self, opened: HttpSession | None) -> None:
        if self._method == "POST":
            await self._post(opened)
            return
        if self._method not in {"GET", "DELETE"}:
            raise _not_allowed("GET, POST, DELETE")
        if self._method == "GET" and not accepts(self._headers, EVENTS):
            raise _not_acceptable("text/event-stream")
        if opened is None:
            raise _no_session()
        if self._method == "DELETE":
            await self._sessions.close(opened)
            await self._answer_to(opened).send_nothing(200)
        else:
            await self._follow(opened)

    async def _post(self, opened: HttpSession | None) -> None:
        self._check_types()
        message = await self._message()
        if isinstance(message, Request) and message.method == INITIALIZE and opened is None:
            await self._open(message)
            return
        if opened is None:
            raise _no_session()
        if isinstance(message, Request):
            await self._call(opened, message)
            return
        if isinstance(message, Response):
            opened.pending.take(message)
        elif message.method == "notifications/cancelled":
            opened.calls.cancel(message.params.get("requestId"))
        await self._answer_to(opened).send_nothing(202)

    async def _open(self, request: Request) -> None:
        """Answer a handshake."""
        owner = self._owner
        opened = await self._sessions.new(owner)
        if opened is None:
            problem = RpcError(INTERNAL_ERROR, "too many sessions are open; try again later")
            raise _RejectedError(503, problem, [(b"retry-after", b"5")])
        result: bytes | None = None
        with self._sessions.used(opened):
            try:
                self._server.admit(opened.session, request)
                answer = await self._server.serve(opened.session, request, self._answer_to(opened))
                await self._server.open(opened.session, request.params)
                result = result_message(request.id, answer)
            except RpcError as problem:
                await self._answer_to(None).finish(error_message(request.id, problem.wire))
            except FastAgentError as error:
                problem = RpcError(INTERNAL_ERROR, error.message)
                await self._answer_to(None).finish(error_message(request.id, problem.wire))
            finally:
                if result is None:
                    await self._sessions.close(opened)
            if result is not None:
                await self._answer_to(opened).finish(result)

    async def _call(self, opened: HttpSession, request: Request) -> None:
        to = self._answer_to(opened, streams=self._server.streams)
        message: bytes | None = None
        try:
            scope = opened.calls.start(request.id)
        except RpcError as problem:
            await to.finish(error_message(request.id, problem.wire))
            return
        try:
            with scope:
                self._server.admit(opened.session, request)
                message = await self._result(opened.session, request, to, scope)
            if scope.cancelled_caught:
                problem = RpcError(CANCELLED, "the request was cancelled")
                message = error_message(request.id, problem.wire)
        except RpcError as problem:
            message = error_message(request.id, problem.wire)
        finally:
            opened.calls.end(request.id)
        if message is not None:
            await to.finish(message)

    async def _follow(self, opened: HttpSession) -> None:
        """Send notifications of a session until its client leaves."""
        if opened.stream is not None:
            # A client that lost its stream comes back before the loss is noticed here.
            if b"last-event-id" not in self._headers:
                problem = RpcError(
                    INVALID_REQUEST, "Conflict: Only one SSE stream is allowed per session"
                )
                raise _RejectedError(409, problem)
            opened.stream.cancel()
        to = self._answer_to(opened, streams=True)
        with anyio.CancelScope() as own:
            opened.stream = own
            try:
                with self._until_departure(to, own):
                    await to.stream()
                    await self._server.stream(opened.mailbox, to)
            finally:
                if opened.stream is own:
                    opened.stream = None
        await to.end()

    # The newest protocol.

    async def _answer_modern(self, version: bytes) -> None:
        if self._method != "POST":
            raise _not_allowed("POST")
        self._check_types()
        message = await self._message()
        if isinstance(message, Response):
            problem = RpcError(INVALID_REQUEST, "the newest protocol takes no answers")
            raise _RejectedError(400, problem)
        if not isinstance(message, Request):
            if version not in {one.encode() for one in MODERN_VERSIONS}:
                problem = rpc_error(unsupported(version.decode("latin-1")), _modern_session())
                raise _RejectedError(400, problem)
            await self._answer_to(None).send_nothing(202)
            return
        streams = accepts(self._headers, EVENTS)
        if message.method == LISTEN and not streams:
            raise _not_acceptable("text/event-stream")
        streams = streams and (self._server.streams or message.method == LISTEN)
        to = self._answer_to(None, streams=streams)
        session = _modern_session()
        answer: bytes | None = None
        try:
            self._check_headers(message)
            if message.method == INITIALIZE:
                raise rpc_error(unknown_method(INITIALIZE), session)
            self._server.admit(session, message)
            with anyio.CancelScope() as scope:
                answer = await self._result(session, message, to, scope)
        except RpcError as problem:
            status = _STATUSES.get(problem.code, 200)
            await to.finish(error_message(message.id, problem.wire), status)
            return
        if answer is not None:
            await to.finish(answer)

    def _check_headers(self, request: Request) -> None:
        """Check that a request of the newest protocol is the one that its headers announce.

        Raises:
            RpcError: It is another one.
        """
        meta = request.params.get("_meta")
        if not isinstance(meta, Mapping) or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
            return  # which is refused in its turn
        if meta[VERSION_KEY] != self._header(_VERSION):
            raise _mismatch("MCP-Protocol-Version", "the version in `params._meta`")
        if request.method != self._header(_METHOD):
            raise _mismatch("Mcp-Method", "the method of the request")
        key = _NAMES.get(request.method)
        value = None if key is None else request.params.get(key)
        if value is not None and value != _decoded(self._header(_NAME)):
            raise _mismatch("Mcp-Name", f"`{key}` of the request")

    def _header(self, name: bytes) -> str | None:
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    # Both.

    def _check_types(self) -> None:
        kind = self._headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            problem = RpcError(INVALID_REQUEST, "`Content-Type` must be application/json")
            raise _RejectedError(400, problem)
        if not accepts(self._headers, JSON):
            raise _not_acceptable("application/json")
        modern = self._headers.get(_VERSION, b"") in _MODERN
        if self._server.streams and not modern and not accepts(self._headers, EVENTS):
            raise _not_acceptable("both application/json and text/event-stream")

    async def _message(self) -> Message:
        try:
            return read_message(await self._body())
        except InvalidMessageError as problem:
            raise _RejectedError(400, problem) from None

    async def _body(self) -> bytes:
        parts: list[bytes] = []
        while True:
            part = await self._receive()
            parts.append(part.get("body", b""))
            if not part.get("more_body"):
                return b"".join(parts)

    async def _result(
        self, session: Session, request: Request, to: HttpAnswer, scope: anyio.CancelScope
    ) -> bytes:
        """Return the message with the result; `scope` is cancelled when the client leaves.

        Raises:
            RpcError: There is none.
        """
        if request.method in _UNWATCHED:
            return result_message(request.id, await self._server.serve(session, request, to))
        with self._until_departure(to, scope):
            return result_message(request.id, await self._server.serve(session, request, to))

    @contextmanager
    def _until_departure(self, to: HttpAnswer, scope: anyio.CancelScope) -> Generator[None]:
        """Cancel a scope when the client leaves; until then, break each long silence."""
        self._departure.notify(scope.cancel)
        try:
            with self._silences.broken(to):
                yield
        finally:
            self._departure.notify(None)


_MODERN: Final = frozenset(version.encode() for version in MODERN_VERSIONS)


def _modern_session() -> Session:
    session = Session(_no_send)
    session.opened = "modern"
    return session


def _no_send(method: str, params: object) -> None:
    """Drop a notification to a client that opened no stream."""


def _decoded(value: str | None) -> str | None:
    """Return what a header says that may be in Base64; None if it is malformed."""
    start, end = _BASE64
    if value is None or not (value.startswith(start) and value.endswith(end)):
        return value
    try:
        return b64decode(value[len(start) : -len(end)], validate=True).decode()
    except (Error, UnicodeDecodeError):
        return None


def _mismatch(header: str, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"the `{header}` header is not {what}")


def _no_session() -> _RejectedError:
    return _RejectedError(400, RpcError(INVALID_REQUEST, "Bad Request: Missing session ID"))


def _not_acceptable(kinds: str) -> _RejectedError:
    return _RejectedError(
        406, RpcError(INVALID_REQUEST, f"Not Acceptable: Client must accept {kinds}")
    )


def _not_allowed(methods: str) -> _RejectedError:
    problem = RpcError(INVALID_REQUEST, "Method Not Allowed")
    return _RejectedError(405, problem, [(b"allow", methods.encode())])


def accepts(headers: Mapping[bytes, bytes], kind: bytes) -> bool:
    """Return whether a client takes answers of a media type."""
    given = headers.get(b"accept", b"")
    if kind in given:
        return True  # the usual case; a name that only contains another's is nothing real
    group = kind.partition(b"/")[0] + b"/*"
    found = {one.partition(b";")[0].strip().lower() for one in given.split(b",")}
    return not found.isdisjoint({kind, group, b"*/*"})


def _event_of(message: bytes) -> bytes:
    for separator, escape in _LINE_SEPARATORS:
        if separator in message:
            message = message.replace(separator, escape)
    return b"event: message\r\ndata: %b\r\n\r\n" % message
