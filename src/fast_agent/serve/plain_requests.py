"""A short way for the plainest requests over HTTP.

A well-formed read or list of the newest protocol needs nothing of the SDK: no session, no stream,
no header left to doubt. It is answered here with the JSON the core keeps ready, in half the time.
Whatever is not plainly right, and whatever cannot be answered with a result, takes the SDK's way,
so nothing is refused here and there is nothing to say differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.errors import ResourceError
from fast_agent.resources.encoding import encode
from fast_agent.resources.opening import CAPABILITIES, VERSION
from fast_agent.resources.session import MODERN_VERSIONS, Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fast_agent.resources.service import ResourceService
    from fast_agent.text.json_value import JsonObject

_METHODS = frozenset(
    {"resources/read", "resources/list", "resources/templates/list", "server/discover"}
)
_VERSIONS = frozenset(version.encode() for version in MODERN_VERSIONS)
_READ = "resources/read"
_MOST_BODY = 1 << 16
_NEEDED = (b"host", b"content-type", b"accept", b"mcp-method")


class PlainRequests:
    """An application in front of the SDK's.

    Args:
        app: The SDK's.
        service: Answers.
        path: Where MCP is served.
        hosts: The `Host` headers that are let in; None for any.
    """

    def __init__(
        self, app: ASGIApp, service: ResourceService, path: str, hosts: Iterable[str] | None
    ) -> None:
        self._app = app
        self._service = service
        self._path = path
        self._hosts = None if hosts is None else frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request; hand every other one on."""
        headers = self._plain_headers(scope)
        if headers is None:
            await self._app(scope, receive, send)
            return
        first = await receive()
        body = self._answer(first, headers)
        if body is None:
            await self._app(scope, _again(first, receive), send)
            return
        length = (b"content-length", b"%d" % len(body))
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [length, (b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": body})

    def _plain_headers(self, scope: Scope) -> dict[bytes, bytes] | None:
        """The headers of a request that is plain as far as they tell."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            return None
        given: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(given)
        if (
            len(headers) != len(given)
            or headers.get(b"mcp-protocol-version") not in _VERSIONS
            or b"origin" in headers
            or not all(name in headers for name in _NEEDED)
            or (self._hosts is not None and headers[b"host"] not in self._hosts)
            or headers[b"content-type"] != b"application/json"
            or b"application/json" not in headers[b"accept"]
            or b";" in headers[b"accept"]
        ):
            return None
        return headers

    def _answer(self, first: Message, headers: Mapping[bytes, bytes]) -> bytes | None:
        """The answer to a plain request, or None where the SDK must look at it."""
        body = first.get("body", b"")
        if first["type"] != "http.request" or first.get("more_body") or len(body) > _MOST_BODY:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict):
            return None
        request = cast("JsonObject", message)
        request_id, method, params = map(request.get, ("id", "method", "params"))
        if (
            request.get("jsonrpc") != "2.0"
            or isinstance(request_id, bool)
            or not isinstance(request_id, (int, str))
            or method not in _METHODS
            or not isinstance(params, Mapping)
            or not _as_headers_say(str(method), params, headers)
        ):
            return None
        try:
            answer = self._service.answer(Session(_no_send), str(method), params, request_id)
        except ResourceError:
            return None
        if answer is None:
            return None
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), answer.json)


def _as_headers_say(method: str, params: JsonObject, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request is the one that its headers announce."""
    meta = params.get("_meta")
    if not isinstance(meta, Mapping) or not isinstance(meta.get(CAPABILITIES), Mapping):
        return False
    name = params.get("uri") if method == _READ else None
    if method == _READ and (
        not isinstance(name, str)
        or not name.isascii()
        or headers.get(b"mcp-name") != name.encode()
        or name.startswith("=?")
    ):
        return False
    version = meta.get(VERSION)
    return (
        isinstance(version, str)
        and headers[b"mcp-protocol-version"] == version.encode()
        and headers[b"mcp-method"] == method.encode()
    )


def _again(first: Message, receive: Receive) -> Receive:
    """Give a message that was taken already, then go on."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _no_send(method: str, params: JsonObject) -> None:
    """Pass over a notification to a client that opened no stream."""
