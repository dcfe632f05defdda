"""Departure: word of a client that went away while its request was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from anyio import CancelScope
    from starlette.types import Message, Receive, Send

DEPARTURE = "fast_agent.departure"
"""Where the ASGI scope of a request holds its `Departure`."""


class Departure:
    """Whether the client of a request has left, and what ends then."""

    __slots__ = ("_left", "_scope")

    def __init__(self) -> None:
        self._left = False
        self._scope: CancelScope | None = None

    def ends(self, scope: CancelScope) -> None:
        """Cancel a scope when the client leaves, or now where it has."""
        self._scope = scope
        if self._left:
            scope.cancel()

    def leave(self) -> None:
        """Take note that it left."""
        self._left = True
        if self._scope is not None:
            self._scope.cancel()

    def watched(self, receive: Receive) -> Receive:
        """Take note of what a request receives."""

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.leave()
            return message

        return watched

    def spoken(self, send: Send) -> Send:
        """Keep what is answered from a client that has left; nobody can take it."""

        async def spoken(message: Message) -> None:
            if not self._left:
                await send(message)

        return spoken


def departure_of(request: object) -> Departure | None:
    """Give that of a request the SDK hands on; None where it came by no HTTP."""
    scope: object = getattr(request, "scope", None)
    if not isinstance(scope, dict):
        return None
    found = cast("dict[str, object]", scope).get(DEPARTURE)
    return found if isinstance(found, Departure) else None
