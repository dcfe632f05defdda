"""One HTTP connection: bounds and back-pressure in front of the application.

The parser of the HTTP server reads whatever arrives: heads of any length, and requests behind the
one that is being answered. Here a connection has one request at a time. Its head is checked before
its body is read, the application sees it once its body is complete, and what follows is read when
the answer has been written. What a client pipelines until then waits in the socket.
"""

from __future__ import annotations

import json
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from fast_agent.serve.connections import DEPARTURE, DisconnectMonitor
from fast_agent.serve.http_access import HEALTH_PATH, Refusal
from fast_agent.serve.http_framing import ChunkedBody, FramingError, HeadEnd, SizedBody

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Transport
    from collections.abc import Mapping, Sequence

    from uvicorn import Config
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from fast_agent.serve.connections import Connections, LimitedLog
    from fast_agent.serve.http_access import AccessPolicy

    Headers = Sequence[tuple[bytes, bytes]]

_BUFFER: Final = memoryview(bytearray(1 << 16))
"""Where all connections read: each takes what it got before the next one reads."""
_SMALL_BUFFER: Final = _BUFFER[: 1 << 14]
"""Part of that buffer for everything except wanted bodies: what may be read ahead."""
_UNCOUNTED_BYTES: Final = 1 << 16
"""Bytes of a body that find room however much others take."""
_DELAY_SECONDS: Final = 0.02
"""How much longer the next request of a connection waits for each that was refused or pipelined."""
_MAX_IGNORED_BYTES: Final = 16 << 20
"""Maximum bytes of a refused request that are read so that its client sees the answer."""


_LINE_END: Final = b"\r\n"
_NO_BODY: Final = SizedBody(0)
_INVALID: Final = Refusal(400, "the request is not valid HTTP", closes=True)
_BUSY: Final = Refusal(503, "the server is busy", [(b"retry-after", b"5")], closes=True)


class _ReadState(Enum):
    """What the next bytes of a connection are."""

    NOTHING = auto()
    """The start of a head, if any come."""
    HEAD = auto()
    BODY = auto()
    NEXT = auto()
    """Of the next request; this one is being answered."""
    REFUSED = auto()
    """Of an unwanted body."""
    ENDED = auto()
    """Nothing: the connection was answered for the last time, and the client has to close it."""


_NOTHING, _HEAD, _BODY, _NEXT, _REFUSED, _ENDED = _ReadState
"""Constants: attributes of an enumeration take 0.2 µs each, and a request asks for twenty."""


class HttpProtocol(HttpToolsProtocol):
    """The HTTP server's protocol, with the bounds of `Connections` and the checks of a policy.

    `Listener` gives it to transports as a `BufferedProtocol`.

    Args:
        config: Of the HTTP server.
        server_state: Of the HTTP server.
        app_state: Of the HTTP server.
        connections: The open connections.
        access: Decides which requests reach the application.
        log: Logs requests that were refused.

    Attributes:
        is_known: Whether a request has passed the access checks.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        connections: Connections,
        access: AccessPolicy,
        log: LimitedLog,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.is_known = False
        self._open = connections
        self._limits = connections.limits
        self._access = access
        self._log = log
        self._reading: _ReadState = _NOTHING
        self._since = self.loop.time()
        """When the client was last active; in a head, when the head started."""
        self._patience = self._limits.head_seconds
        """How long the client may be silent before its next head starts."""
        self._head_end = HeadEnd()
        self._head_size = 0
        self._ready: tuple[RequestResponseCycle, ASGI3Application] | None = None
        """The request whose body arrives."""
        self._body: SizedBody | ChunkedBody = _NO_BODY
        self._answered = False
        """In `NEXT`: whether only the client keeps the next request from being read."""
        self._ahead = b""
        """Bytes of the next request, at most one read of them."""
        self._paused = False
        self._ignored = 0
        self._delays = 0
        self._delayed = False
        self._unwritten = 0
        self._departure: DisconnectMonitor | None = None
        """Of the client whose request is being answered."""

    # The transport calls these.

    def connection_made(self, transport: Transport) -> None:
        """Start a connection, or refuse it if there are too many."""
        joined = _BatchingTransport(transport, self.loop)
        super().connection_made(joined)  # type: ignore[arg-type]
        self.flow = _WriteFlow(joined)  # type: ignore[arg-type]
        transport.set_write_buffer_limits(high=0)  # writing is paused while anything is unwritten
        self._since = self.loop.time()
        if not self._open.add(self):
            self._log("connections are refused: as many as possible are being answered")
            self._refuse(_BUSY)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; the application is notified that its client has left."""
        self._open.remove(self)
        self._reading = _ENDED
        self._ready = None
        super().connection_lost(exc)
        departure, self._departure = self._departure, None
        if departure is not None:
            departure.come()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where to read to: less where the client may send unrequested data."""
        return _BUFFER if self._reading is _BODY else _SMALL_BUFFER

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that were read."""
        self._take(bytes(_BUFFER[:nbytes]))

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        if self._reading is _NOTHING:
            self._reading = _NEXT  # an answer was written only in part
        self._open.wait(self)

    def resume_writing(self) -> None:
        """Continue: the client has read everything."""
        super().resume_writing()
        self._since = self.loop.time()
        if self._reading is not _NEXT:
            return
        if not self._answered:
            self._open.answer(self)
        elif not self._delayed:
            self._read_next()

    # `Connections` calls these.

    def check(self, now: float) -> None:
        """End the connection if its client is silent for too long."""
        silent = now - self._since
        if self._reading is _NEXT:
            self._check_writing(now)
        elif self._reading is _NOTHING:
            if silent > self._patience:
                self.transport.close()
        elif self._reading is _HEAD:
            if silent > self._limits.head_seconds:
                self._refuse(Refusal(408, "the head of the request took too long", closes=True))
        elif self._reading is _BODY:
            if silent > self._limits.body_seconds:
                self._refuse(Refusal(408, "the body of the request took too long", closes=True))
        elif silent > self._limits.head_seconds:
            self.transport.abort()

    def end(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def leave(self) -> None:
        """End the connection when the request it has is answered."""
        self.cycle.keep_alive = False

    # The parser and the application call these.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; the parser leaves the blanks after its value, which are not part of it."""
        name = name.lower()
        value = value.strip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_body(self, body: bytes) -> None:
        """Take nothing: the parser is given heads only."""

    def on_message_complete(self) -> None:
        """Do nothing: the parser is given heads only."""

    def on_response_complete(self) -> None:
        """Read the next request once the answer is written."""
        self.server_state.total_requests += 1
        self._departure = None
        self._open.release(self)
        if self.transport.is_closing():
            return
        self._answered = True
        if self._ahead:
            self._delay_next()  # or clients that send without reading take turns with all others
        else:
            self._read_next()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Keep a request until its body is complete."""
        self._ready = (cycle, app)

    # From here on, what arrives is taken apart.

    def _take(self, data: bytes) -> None:
        if self._reading is _BODY:
            self._since = self.loop.time()
        while data and self._reading is not _NEXT and not self.transport.is_closing():
            data = data[self._take_part(data) :]
        if self._reading is not _NEXT:
            self._open.wait(self)
        elif data:
            self._ahead += data
            if not self._paused:
                self._paused = True
                self.transport.pause_reading()

    def _take_part(self, data: bytes) -> int:
        """Take bytes up to where something else starts; return how many."""
        if self._reading is _NOTHING:
            if data[0] in _LINE_END:
                return len(data) - len(data.lstrip(_LINE_END))
            self._start_head()
        if self._reading is _HEAD:
            return self._take_head(data)
        if self._reading is _ENDED:
            self._ignore(len(data))
            return len(data)
        return self._take_body(data)

    def _start_head(self) -> None:
        self._reading = _HEAD
        self._since = self.loop.time()
        self._head_end = HeadEnd()
        self._head_size = 0
        self._ready = None
        self.headers = []
        self.parser = HttpRequestParser(self)

    def _take_head(self, data: bytes) -> int:
        size = self._head_end.take(data)
        self._head_size += size
        try:
            self.parser.feed_data(data[:size])
        except HttpParserUpgrade:
            pass  # the request is answered as if it had not asked to change the protocol
        except HttpParserError:
            self._refuse(_INVALID)
            return size
        if self._head_size > self._limits.head_bytes:
            self._refuse(Refusal(431, "the head of the request is too long", closes=True))
        elif len(self.headers) > self._limits.headers:
            self._refuse(Refusal(431, "the request has too many headers", closes=True))
        elif self._head_end.complete:
            self._check_head()
        return size

    def _check_head(self) -> None:
        """Decide whether a request reaches the application, and how long its body is."""
        if self._ready is None:
            self._refuse(_INVALID)
            return
        cycle = self._ready[0]
        headers = cast("Headers", self.scope["headers"])
        given = dict(headers)
        try:
            self._body = self._announced_body(given)
        except FramingError as error:
            self._refuse(Refusal(400, str(error), closes=True))
            return
        path = cycle.scope["path"]
        checked = self._access.check(cycle.scope["method"], given, headers, path)
        if checked.headers:
            cycle.default_headers = [*cycle.default_headers, *checked.headers]
        if checked.refusal is not None:
            self._refuse(checked.refusal)
        elif isinstance(self._body, SizedBody) and self._body.left > self._limits.body_bytes:
            self._refuse(_too_large(self._limits.body_bytes))
        else:
            self.is_known = self.is_known or path != HEALTH_PATH
            self._reading = _BODY
            self._since = self.loop.time()
            self._start_body(cycle)

    def _announced_body(self, given: Mapping[bytes, bytes]) -> SizedBody | ChunkedBody:
        coding = given.get(b"transfer-encoding")
        if coding is None:
            return SizedBody(int(given.get(b"content-length", 0)))  # the parser takes only numbers
        if coding.lower() != b"chunked" or self.scope["http_version"] == "1.0":
            raise FramingError("the transfer coding of the request is not supported")
        return ChunkedBody(self._limits.head_bytes)

    def _start_body(self, cycle: RequestResponseCycle) -> None:
        if self._body.complete:
            self._start_answer()
        elif cycle.waiting_for_100_continue:
            cycle.waiting_for_100_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _take_body(self, data: bytes) -> int:
        before = self._body.size
        try:
            count = self._body.take(data)
        except FramingError as error:
            self._refuse(Refusal(400, str(error), closes=True))
            return len(data)
        if self._reading is _REFUSED:
            self._ignore(count)
            if self._body.complete:
                self._end_refusal()
            return count
        size = self._body.size
        if size > self._limits.body_bytes:
            self._refuse(_too_large(self._limits.body_bytes))
        elif size > _UNCOUNTED_BYTES and not self._open.hold(self, size - before):
            self._log(
                "requests are refused: the bodies of others use all the memory allowed for them"
            )
            self._refuse(_BUSY)
        elif self._body.complete:
            self._start_answer()
        return count

    def _start_answer(self) -> None:
        """Pass a complete request to the application."""
        ready, self._ready = self._ready, None
        if ready is None:
            raise RuntimeError("a body is complete that belongs to no request")
        cycle, app = ready
        cycle.waiting_for_100_continue = False
        cycle.body = self._body.data
        cycle.more_body = False
        cycle.message_event.set()
        self._departure = DisconnectMonitor()
        cast("dict[str, object]", cycle.scope)["extensions"] = {DEPARTURE: self._departure}
        self._body = _NO_BODY
        self._reading = _NEXT
        self._answered = False
        self._open.answer(self)
        super()._start_asgi_task(cycle, app)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a request without the application, and take no more of it."""
        cycle = self._ready[0] if self._ready is not None else None
        headers = self.server_state.default_headers if cycle is None else cycle.default_headers
        closes = refusal.closes or cycle is None or not cycle.keep_alive
        self._ready = None
        self.cycle = None  # type: ignore[assignment]
        self._open.release(self)
        with_body = cycle is None or cycle.scope["method"] != "HEAD"
        self.transport.write(answer_of(refusal, headers, closes=closes, with_body=with_body))
        self._body.drop()
        self._since = self.loop.time()
        if closes:
            self._reading = _ENDED
            self.transport.write_eof()
        elif self._body.complete:
            self._end_refusal()
        else:
            self._reading = _REFUSED

    def _end_refusal(self) -> None:
        """Read the next request later: the client may be guessing."""
        self._reading = _NEXT
        self._answered = True
        self._delay_next(self._open.turn_after_refusal(self.loop.time()))

    def _delay_next(self, turn: float = 0.0) -> None:
        """Read the next request the later, the more often this was necessary, and not before."""
        self.is_known = False
        self._delays += 1
        self._delayed = True
        self._open.wait(self)
        least = self.loop.time() + min(1.0, _DELAY_SECONDS * self._delays)
        self.loop.call_at(max(least, turn), self._end_delay)

    def _end_delay(self) -> None:
        self._delayed = False
        self._read_next()

    def _read_next(self) -> None:
        """Read the next request, unless the client has to read first."""
        if self._reading is not _NEXT or self.flow.write_paused:
            return
        self._reading = _NOTHING
        self._since = self.loop.time()
        self._patience = self._limits.idle_seconds
        self._ignored = 0
        data, self._ahead = self._ahead, b""
        if data:
            self._take(data)
        else:
            self._open.wait(self)
        if self._paused and not self._ahead and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

    def _ignore(self, count: int) -> None:
        """Count unwanted bytes. They are read so that the client sees its answer."""
        self._ignored += count
        if self._ignored > _MAX_IGNORED_BYTES:
            self.transport.abort()

    def _check_writing(self, now: float) -> None:
        unwritten = self.transport.get_write_buffer_size()
        if not unwritten or unwritten < self._unwritten:
            self._since = now
        elif now - self._since > self._limits.body_seconds:
            self.transport.abort()
        self._unwritten = unwritten


def answer_of(refusal: Refusal, headers: Headers, *, closes: bool, with_body: bool) -> bytes:
    """Write a refusal as HTTP has it."""
    body = b"" if refusal.error is None else json.dumps({"error": refusal.error}).encode()
    own = [*headers, *refusal.headers]
    if refusal.error is not None:
        own += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if closes:
        own.append((b"connection", b"close"))
    lines = b"".join(b"%b: %b\r\n" % header for header in own)
    return b"%b%b\r\n%b" % (STATUS_LINE[refusal.status], lines, body if with_body else b"")


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"the body of the request is larger than {most:,} bytes", closes=True)


class _WriteFlow(FlowControl):
    """The flow control of answers. When to read is the protocol's matter alone."""

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


class _BatchingTransport:
    """A transport that writes what one step of the event loop gave it, at the step's end."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self.is_closing = transport.is_closing  # this is asked several times a request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def write_eof(self) -> None:
        self._flush()
        with suppress(OSError):  # the client has gone
            self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._transport.write(data)
