"""Departure: word of a client that went away while its request was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.serve.request_note import note_of

if TYPE_CHECKING:
    from anyio import CancelScope
    from starlette.types import Message, Receive, Send

DEPARTURE = "fast_agent.departure"
"""Where the ASGI scope of a request holds its `Departure`."""


class Departure:
    """Whether the client of a request has left, and what ends then.

    The SDK holds on to the request that opened a session as long as the session lives. What it
    holds is this, which lets go of the connection when the request is done.

    Args:
        receive: Gives what the client sends.
        send: Takes what it is answered.
    """

    __slots__ = ("_left", "_receive", "_scope", "_send")

    def __init__(self, receive: Receive, send: Send) -> None:
        self._left = False
        self._scope: CancelScope | None = None
        self._receive: Receive | None = receive
        self._send: Send | None = send

    def ends(self, scope: CancelScope) -> None:
        """Cancel a scope when the client leaves, or now where it has."""
        self._scope = scope
        if self._left:
            scope.cancel()

    async def receive(self) -> Message:
        """Give what the client sends, and take note when it leaves."""
        message: Message = {"type": "http.disconnect"}
        if self._receive is not None:
            message = await self._receive()
        if message["type"] == "http.disconnect":
            self._left = True
            if self._scope is not None:
                self._scope.cancel()
        return message

    async def send(self, message: Message) -> None:
        """Answer, unless the client has left: then nobody can take it."""
        if self._send is not None and not self._left:
            await self._send(message)

    def done(self) -> None:
        """Let go of the connection."""
        self._receive = self._send = self._scope = None


def departure_of(request: object) -> Departure | None:
    """Give that of a request the SDK hands on; None where it came by no HTTP."""
    found = note_of(request, DEPARTURE)
    return found if isinstance(found, Departure) else None
