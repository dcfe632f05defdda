"""Writing an answer's head and body to the socket at once.

The HTTP server writes them one after the other; each write is a call of the system and wakes the
client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Transport


class JoinedWrites(H11Protocol):
    """The HTTP server's protocol over a transport that joins writes."""

    def connection_made(self, transport: Transport) -> None:
        """Begin with a connection."""
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]


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
