"""HTTP as it is spoken over a connection: a bound on heads, and answers written at once.

The HTTP server takes heads of any length, and writes an answer's head and body one after the other;
each write is a call of the system and wakes the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Transport


_MOST_HEAD: Final = 1 << 16


class HttpProtocol(HttpToolsProtocol):
    """The HTTP server's protocol with bounded heads, over a transport that joins writes."""

    _head = 0
    """Bytes of the request that is coming which are no part of its body."""

    def connection_made(self, transport: Transport) -> None:
        """Begin with a connection."""
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Take bytes, and end the connection where they are a head without an end."""
        self._head += len(data)
        super().data_received(data)
        if self._head > _MOST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; the parser leaves the blanks after its value, which are no part of it."""
        super().on_header(name, value.strip(b" \t"))

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._head -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._head = 0
        super().on_message_complete()


class _Joined:
    """A transport that writes what one step of the event loop gave it, at the step's end."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._transport.write(data)
