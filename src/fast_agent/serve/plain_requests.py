"""A short way for the plainest requests over HTTP.

A well-formed handshake, read or list needs nothing of the SDK: no stream, no header left to doubt,
and no session, or one whose handshake is done. It is answered here with the JSON the core keeps
ready, in a fraction of the time. Whatever is not plainly right, and whatever cannot be answered
with a result, takes the SDK's way, so nothing is refused here and there is nothing to say
differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.era import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from fast_agent.resources.opening import CAPABILITIES, VERSION
from fast_agent.resources.session import Session
from fast_agent.rpc.encoding import encode
from fast_agent.serve.plain_message import plain_message, plain_notification
from fast_agent.serve.plain_opening import open_plainly
from fast_agent.serve.plain_sessions import SESSION_ID
from fast_agent.serve.sdk_way import SdkWay

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fast_agent.resources.answer import Answer
    from fast_agent.serve.plain_message import PlainMessage
    from fast_agent.serve.plain_sessions import PlainSession
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.text.json_value import JsonObject, JsonValue

_INITIALIZE = "initialize"
_INITIALIZED = "notifications/initialized"
_LISTS = frozenset({"resources/list", "resources/templates/list"})
_READ = "resources/read"
_MODERN = _LISTS | {_READ, "server/discover"}
_HANDSHAKE = _LISTS | {_READ, "ping"}
_NAMES: Mapping[str, str] = {_READ: "uri", "tools/call": "name"}
"""Requests whose headers name one of their parameters."""

_HANDSHAKE_VERSIONS = {None, *(version.encode() for version in HANDSHAKE_VERSIONS)}
_VERSIONS = frozenset(version.encode() for version in MODERN_VERSIONS)
_JSON = b"application/json"
_EVENTS = b"text/event-stream"
_VERSION = b"mcp-protocol-version"
_OK = 200
_FULL = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Too many sessions are open"}}'
)


class Plain(NamedTuple):
    """A request that is plain as far as its headers tell, and whose it is.

    Args:
        headers: Its headers.
        session: The client.
        modern: Whether it speaks the newest protocol.
    """

    headers: Mapping[bytes, bytes]
    session: Session
    modern: bool


class PlainRequests:
    """An application in front of the SDK's.

    Args:
        app: The SDK's.
        server: Answers, and knows the sessions.
        path: Where MCP is served.
    """

    def __init__(self, app: ASGIApp, server: ResourceServer, path: str) -> None:
        self._app = app
        self._resources = server
        self._service = server.service
        self._sessions = server.sessions
        self._opened = server.plain
        self._path = path
        self._way = SdkWay(app, server.late)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request; hand every other one on."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        given: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(given)
        fair = len(headers) == len(given)
        opened = self._opened.find(headers.get(SESSION_ID))
        if opened is None:
            if scope["method"] == "DELETE":
                self._sessions.forget(headers.get(SESSION_ID, b"").decode("latin-1"))
            await self._take(scope, receive, send, headers if fair else None, None)
            return
        with self._opened.used(opened):
            if scope["method"] == "DELETE":
                await self._end(scope, receive, send, opened, fair=fair)
            else:
                await self._take(scope, receive, send, headers if fair else None, opened)

    async def _take(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[bytes, bytes] | None,
        opened: PlainSession | None,
    ) -> None:
        """Answer a request, plainly where its headers leave no doubt."""
        onward = self._app if opened is None else partial(self._way.take, opened)
        if (
            headers is None
            or scope["method"] != "POST"
            or headers.get(b"content-type") != _JSON
            or not _accepts(_JSON, headers)
        ):
            await onward(scope, receive, send)
            return
        first = await receive()
        if not await self._answered(first, headers, opened, receive, send):
            await onward(scope, _again(first, receive), send)

    async def _answered(
        self,
        first: Message,
        headers: Mapping[bytes, bytes],
        opened: PlainSession | None,
        receive: Receive,
        send: Send,
    ) -> bool:
        message = read_plainly(first)
        if message is not None and message.method == _INITIALIZE:
            return await self._began(message, first, headers, send)
        plain = self._plain(headers, opened)
        if plain is None:
            return False
        if message is None:
            return opened is not None and await self._noted(first, opened, plain, send)
        body = self._answer(message, plain)
        if body is None:
            return await self.late(message, plain, receive, send)
        await send_json(body, plain, send)
        return True

    async def _began(
        self, message: PlainMessage, first: Message, headers: Mapping[bytes, bytes], send: Send
    ) -> bool:
        """Answer a handshake; every client is let in whom the SDK would let in."""
        streams = not self._resources.streams or _accepts(_EVENTS, headers)
        fits = headers.get(_VERSION) in _HANDSHAKE_VERSIONS
        if SESSION_ID in headers or not fits or not streams:
            return False
        if self._opened.full:
            await _refuse_more(send)
            return True
        begun = await open_plainly(self._resources, message, first["body"], self._opened.add)
        if begun is None:
            return False
        session, answer = begun
        headers = {SESSION_ID: session.name}
        plain = Plain(headers, session.session, modern=False)
        await send_json(result_of(message, answer), plain, send)
        return True

    async def _noted(self, first: Message, opened: PlainSession, plain: Plain, send: Send) -> bool:
        """Take a notification where the SDK does not know of the session."""
        if opened.sdk_id is not None or first["type"] != "http.request" or first.get("more_body"):
            return False
        note = plain_notification(first.get("body", b""))
        if note is None:
            return False
        opened.ready = opened.ready or note.method == _INITIALIZED
        self._resources.notice(plain.session, note.method, note.params)
        await _send_empty(send, 202, opened.name)
        return True

    async def _end(
        self, scope: Scope, receive: Receive, send: Send, opened: PlainSession, *, fair: bool
    ) -> None:
        """End a session as its client wants, unless the SDK refuses that."""
        if fair and opened.sdk_id is None:
            await self._opened.close(opened)
            await _send_empty(send, 200, opened.name)
            return

        async def see(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == _OK:
                await self._opened.close(opened)
            await send(message)

        await self._way.take(opened, scope, receive, see)

    async def late(self, message: PlainMessage, plain: Plain, receive: Receive, send: Send) -> bool:
        """Answer what takes its time; see `agent_requests`.

        Args:
            message: The request.
            plain: What its headers tell.
            receive: Tells whether the client is still there.
            send: Takes the answer.

        Returns:
            Whether it was answered here; then nothing was left to do.
        """
        del message, plain, receive, send
        return False

    def _plain(self, headers: Mapping[bytes, bytes], opened: PlainSession | None) -> Plain | None:
        version = headers.get(_VERSION, b"")
        if version in _VERSIONS:
            return Plain(headers, Session(_no_send), modern=True) if opened is None else None
        if opened is not None:
            session: Session | None = opened.session
        else:
            session = self._sessions.find(headers.get(SESSION_ID, b"").decode("latin-1"))
        if session is None or session.protocol is None or session.protocol.encode() != version:
            return None
        return Plain(headers, session, modern=False)

    def _answer(self, message: PlainMessage, plain: Plain) -> bytes | None:
        """The answer to a plain request, or None where the SDK must look at it."""
        if plain.modern:
            fits = message.method in _MODERN and as_headers_say(message, plain.headers)
        else:
            fits = message.method in _HANDSHAKE
        if not fits:
            return None
        try:
            answer = self._service.answer(plain.session, message.method, message.params, message.id)
        except Exception:  # noqa: BLE001 - the long way meets the same, and says and logs it
            return None
        if answer is None:
            return None
        return result_of(message, answer)


def _accepts(kind: bytes, headers: Mapping[bytes, bytes]) -> bool:
    return any(one.strip() == kind for one in headers.get(b"accept", b"").split(b","))


def read_plainly(first: Message) -> PlainMessage | None:
    """Read the request of a body that came at once; None where it is not plain."""
    if first["type"] != "http.request" or first.get("more_body"):
        return None
    return plain_message(first.get("body", b""))


def result_of(message: PlainMessage, answer: Answer) -> bytes:
    """Write the response to a request."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(message.id), answer.json)


async def send_json(body: bytes, plain: Plain, send: Send) -> None:
    """Send a response as the whole body."""
    headers = [(b"content-type", _JSON), (b"content-length", b"%d" % len(body))]
    if not plain.modern:
        headers.append((SESSION_ID, plain.headers[SESSION_ID]))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_empty(send: Send, status: int, name: bytes) -> None:
    """Send a response of a session that says nothing."""
    headers = [(b"content-type", _JSON), (SESSION_ID, name), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse_more(send: Send) -> None:
    """Refuse a session where there are as many as can be."""
    headers = [(b"content-type", _JSON), (b"content-length", b"%d" % len(_FULL))]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _FULL})


def as_headers_say(message: PlainMessage, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request of the newest protocol is the one that its headers announce."""
    meta = message.params.get("_meta")
    if not isinstance(meta, Mapping) or not isinstance(meta.get(CAPABILITIES), Mapping):
        return False
    key = _NAMES.get(message.method)
    if key is not None and not _names(headers.get(b"mcp-name"), message.params.get(key)):
        return False
    version = meta.get(VERSION)
    return (
        isinstance(version, str)
        and headers[_VERSION] == version.encode()
        and headers.get(b"mcp-method") == message.method.encode()
    )


def _names(header: bytes | None, name: JsonValue) -> bool:
    """Whether a header names what is read or called, in plain letters."""
    return (
        isinstance(name, str)
        and name.isascii()
        and not name.startswith("=?")
        and header == name.encode()
    )


def _again(first: Message, receive: Receive) -> Receive:
    """Give a message that was taken already, then go on."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _no_send(method: str, params: JsonObject) -> None:
    """Pass over a notification to a client that opened no stream."""
