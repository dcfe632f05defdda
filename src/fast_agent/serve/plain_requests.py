"""A short way for the plainest requests over HTTP.

A well-formed read or list needs nothing of the SDK: no stream, no header left to doubt, and no
session, or one whose handshake is done. It is answered here with the JSON the core keeps ready, in
a fraction of the time. Whatever is not plainly right, and whatever cannot be answered with a
result, takes the SDK's way, so nothing is refused here and there is nothing to say differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.encoding import encode
from fast_agent.resources.era import MODERN_VERSIONS
from fast_agent.resources.opening import CAPABILITIES, VERSION
from fast_agent.resources.session import Session
from fast_agent.serve.plain_message import plain_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fast_agent.resources.answer import Answer
    from fast_agent.serve.plain_message import PlainMessage
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.text.json_value import JsonObject, JsonValue

_LISTS = frozenset({"resources/list", "resources/templates/list"})
_READ = "resources/read"
_MODERN = _LISTS | {_READ, "server/discover"}
_HANDSHAKE = _LISTS | {_READ, "ping"}
_NAMES: Mapping[str, str] = {_READ: "uri", "tools/call": "name"}
"""Requests whose headers name one of their parameters."""

_VERSIONS = frozenset(version.encode() for version in MODERN_VERSIONS)
_JSON = b"application/json"
_SESSION_ID = b"mcp-session-id"


class Plain(NamedTuple):
    """A request that is plain as far as its headers tell, and whose it is."""

    headers: Mapping[bytes, bytes]
    session: Session
    modern: bool


class PlainRequests:
    """An application in front of the SDK's.

    Args:
        app: The SDK's.
        server: Answers, and knows the sessions.
        path: Where MCP is served.
        hosts: The `Host` headers that are let in; None for any.
    """

    def __init__(
        self, app: ASGIApp, server: ResourceServer, path: str, hosts: Iterable[str] | None
    ) -> None:
        self._app = app
        self._service = server.service
        self._sessions = server.sessions
        self._path = path
        self._hosts = None if hosts is None else frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request; hand every other one on."""
        plain = self._plain(scope)
        if plain is None:
            await self._app(scope, receive, send)
            return
        first = await receive()
        message = read_plainly(first)
        body = None if message is None else self._answer(message, plain)
        if body is not None:
            await send_json(body, plain, send)
        elif message is None or not await self.late(message, plain, receive, send):
            await self._app(scope, _again(first, receive), send)

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

    def _plain(self, scope: Scope) -> Plain | None:
        if scope["type"] != "http" or scope["path"] != self._path:
            return None
        given: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(given)
        if scope["method"] == "DELETE":
            self._sessions.forget(headers.get(_SESSION_ID, b"").decode("latin-1"))
        if (
            scope["method"] != "POST"
            or len(headers) != len(given)
            or b"origin" in headers
            or not self._lets_in(headers.get(b"host"))
            or headers.get(b"content-type") != _JSON
            or not _accepts_json(headers.get(b"accept", b""))
        ):
            return None
        version = headers.get(b"mcp-protocol-version", b"")
        if version in _VERSIONS:
            return Plain(headers, Session(_no_send), modern=True)
        session = self._sessions.find(headers.get(_SESSION_ID, b"").decode("latin-1"))
        if session is None or session.protocol is None or session.protocol.encode() != version:
            return None
        return Plain(headers, session, modern=False)

    def _lets_in(self, host: bytes | None) -> bool:
        return host is not None and (self._hosts is None or host in self._hosts)

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


def _accepts_json(accept: bytes) -> bool:
    return any(kind.strip() == _JSON for kind in accept.split(b","))


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
        headers.append((_SESSION_ID, plain.headers[_SESSION_ID]))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
        and headers[b"mcp-protocol-version"] == version.encode()
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
