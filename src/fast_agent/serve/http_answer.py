"""The answer to a request over HTTP: one JSON body, or a stream of events that ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.rpc.message import RemoteError, notification_message
from fast_agent.serve.http_sessions import SESSION_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Send

    from fast_agent.serve.http_sessions import HttpSession
    from fast_agent.text.json_value import JsonObject

    Headers = Sequence[tuple[bytes, bytes]]

PING_SECONDS: Final = 15.0
"""After how much silence a stream gets a comment, so that no proxy takes it for dead."""

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


class HttpAnswer:
    """An answer on its way, and the channel of its request.

    It becomes a stream when something is sent before the result, or the result takes long.

    Args:
        send: Takes the answer.
        owner: Who the client is.
        opened: Its session; None if it has none.
        streams: Whether it may become a stream.
    """

    __slots__ = ("_opened", "_send", "_sending", "_streaming", "_streams", "owner")

    def __init__(
        self, send: Send, owner: str, opened: HttpSession | None, *, streams: bool
    ) -> None:
        self.owner = owner
        self._send = send
        self._opened = opened
        self._streams = streams
        self._streaming = False
        self._sending: anyio.Lock | None = None

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
                self._streaming = True
                await self._start(200, _EVENT_HEADERS)
            if data:
                await self._body(data, more=True)

    async def comment(self) -> None:
        """Send a comment, after a time of silence."""
        if self._streams:
            await self.stream(b": ping\r\n\r\n")

    async def finish(self, message: bytes, status: int = 200, headers: Headers = ()) -> None:
        """Send the answer's last message.

        Args:
            message: The message.
            status: The HTTP status, unless the answer is a stream by now.
            headers: More headers, unless the answer is a stream by now.
        """
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
