"""Guests: clients of agents that opened with a handshake, and their calls under way."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

    from anyio import CancelScope

    from fast_agent.resources.session import Session
    from fast_agent.serve.agent_conversation import Conversation
    from fast_agent.serve.agent_scopes import Scopes
    from fast_agent.text.json_value import JsonObject, JsonValue


class Guest(NamedTuple):
    """A client.

    Args:
        own: The conversation of its connection; None where connections have none.
        askable: Whether it can be asked for anything while it waits.
    """

    own: Conversation | None
    askable: bool


class Guests:
    """The clients that are here.

    Args:
        scopes: The conversations.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._here: dict[Session, Guest] = {}
        self._calls: dict[Session, dict[int | str, CancelScope]] = {}
        """Calls that the SDK does not know of."""

    def __contains__(self, session: Session) -> bool:
        return session in self._here

    def find(self, session: Session) -> Guest | None:
        """Give the guest of a session; None where it opened without a handshake."""
        return self._here.get(session)

    def own(self, session: Session) -> Conversation | None:
        """Give the conversation of a client's connection; None where it has none."""
        guest = self._here.get(session)
        return None if guest is None else guest.own

    async def welcome(self, session: Session, can: JsonValue) -> None:
        """Begin the conversation of a new connection.

        Args:
            session: The client.
            can: The capabilities it declared.
        """
        self._here[session] = Guest(await self._scopes.connect(), is_askable(can))

    async def farewell(self, session: Session) -> None:
        """End the conversation of a connection, and the calls that still run."""
        guest = self._here.pop(session)
        for scope in tuple(self._calls.pop(session, {}).values()):
            scope.cancel()
        if guest.own is not None:
            await self._scopes.disconnect(guest.own)

    @contextmanager
    def calling(
        self, session: Session, request_id: int | str, scope: CancelScope
    ) -> Generator[None]:
        """Let a client call a call off while it is open."""
        calls = self._calls.setdefault(session, {})
        calls[request_id] = scope
        try:
            yield
        finally:
            if calls.get(request_id) is scope:
                del calls[request_id]
            if not calls:
                self._calls.pop(session, None)

    def call_off(self, session: Session, params: JsonObject) -> None:
        """Cancel the call that a client calls off, where it is one of these."""
        request_id = params.get("requestId")
        if isinstance(request_id, (int, str)):
            found = self._calls.get(session, {}).get(request_id)
            if found is not None:
                found.cancel()


def is_askable(capabilities: JsonValue) -> bool:
    """Whether a client with these capabilities can be asked for anything on the way."""
    if not isinstance(capabilities, Mapping):
        return True  # nonsense, which the SDK refuses
    return "elicitation" in capabilities or "sampling" in capabilities
