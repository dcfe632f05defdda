"""The sessions of clients that opened with a handshake over HTTP, by the id they send."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.session import Session

RENEWED_SECONDS = 300.0
"""How long after a request that the SDK has seen others may pass it by."""


class OpenSessions:
    """The sessions that the SDK holds open.

    The SDK ends a session it has seen no request of for some time, and does not see those that are
    answered before they reach it. So a session is given out for a while only, and then again when
    the SDK has seen a request of it.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[Session, float]] = {}

    def see(self, session_id: str, session: Session) -> None:
        """Take note of a request that the SDK has seen."""
        self._seen[session_id] = (session, self._clock())

    def forget(self, session_id: str) -> None:
        """Leave a session to the SDK alone, because it ends or may end."""
        self._seen.pop(session_id, None)

    def find(self, session_id: str) -> Session | None:
        """Give an open session, or None where only the SDK can say what is right."""
        found = self._seen.get(session_id)
        if found is None or self._clock() - found[1] > RENEWED_SECONDS:
            return None
        return found[0]
