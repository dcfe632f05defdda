"""Sessions that clients over HTTP opened by a plain handshake, which needs nothing of the SDK.

Most of their requests are plain too. The SDK comes to know of one of them when its client first
wants something that only the SDK does, such as a stream: then it is told the client's handshake.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import anyio

from fast_agent.serve.request_note import note_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from fast_agent.resources.session import Session
    from fast_agent.serve.mailbox import Mailbox

SESSION_ID = b"mcp-session-id"
"""The header with the id of a session."""

MOST_SESSIONS = 1000
"""Most sessions that are open at once."""

IDLE_SECONDS = 1800.0
"""How long a session is held of which no request comes."""

HANDED_ON = "fast_agent.plain_session"
"""Where the ASGI scope of a request that is handed on to the SDK holds its `PlainSession`."""

_LOOK_SECONDS = 60.0


class PlainSession:
    """A session.

    Args:
        name: Its id, which the client sends.
        session: The client.
        hello: The body of its `initialize`.
        mailbox: Holds its notifications.

    Attributes:
        ready: Whether it said that it has taken the answer.
        using: How many of its requests are answered now.
        used_at: When the last of them ended, in seconds of the clock.
        sdk_id: What the SDK calls it; None where the SDK does not know of it.
    """

    __slots__ = ("hello", "mailbox", "name", "ready", "sdk_id", "session", "used_at", "using")

    def __init__(self, name: bytes, session: Session, hello: bytes, mailbox: Mailbox) -> None:
        self.name = name
        self.session = session
        self.hello = hello
        self.mailbox = mailbox
        self.ready = False
        self.using = 0
        self.used_at = 0.0
        self.sdk_id: bytes | None = None

    def leave_sdk(self) -> None:
        """Take note that the SDK has ended its own; it is told of this one again when need be."""
        self.sdk_id = None


class PlainSessions:
    """The sessions that are open, the longest unused first.

    Args:
        ended: Told of each that ends.
        clock: Seconds that never go back.
        new_id: Gives ids that nobody can guess.
    """

    def __init__(
        self,
        ended: Callable[[Session], Awaitable[None]],
        clock: Callable[[], float] = monotonic,
        new_id: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self._ended = ended
        self._clock = clock
        self._new_id = new_id
        self._open: OrderedDict[bytes, PlainSession] = OrderedDict()

    @property
    def full(self) -> bool:
        """Whether no more may be open."""
        return len(self._open) >= MOST_SESSIONS

    def add(self, session: Session, hello: bytes, mailbox: Mailbox) -> PlainSession:
        """Hold a session, whose client sends its name from now on."""
        opened = PlainSession(self._new_id().encode(), session, hello, mailbox)
        opened.used_at = self._clock()
        self._open[opened.name] = opened
        return opened

    def find(self, name: bytes | None) -> PlainSession | None:
        """Give the open session of an id; None where it is none of these."""
        return None if name is None else self._open.get(name)

    @contextmanager
    def used(self, opened: PlainSession) -> Generator[None]:
        """Hold a session while a request of it is answered."""
        opened.using += 1
        try:
            yield
        finally:
            opened.using -= 1
            opened.used_at = self._clock()
            if opened.name in self._open:
                self._open.move_to_end(opened.name)

    async def close(self, opened: PlainSession) -> None:
        """End a session; one that has ended stays so."""
        if self._open.pop(opened.name, None) is not None:
            with anyio.CancelScope(shield=True):
                await self._ended(opened.session)

    async def expire(self) -> None:
        """End those that were not used for long."""
        end = self._clock() - IDLE_SECONDS
        for opened in tuple(self._open.values()):
            if not opened.using and opened.used_at < end:
                await self.close(opened)

    async def look_after(self) -> None:
        """Expire sessions until cancelled; those that are open then end."""
        try:
            while True:
                await anyio.sleep(_LOOK_SECONDS)
                await self.expire()
        finally:
            for opened in tuple(self._open.values()):
                await self.close(opened)


def handed_on(request: object) -> PlainSession | None:
    """Give the session of a request that was handed on to the SDK; None where it has none here."""
    found = note_of(request, HANDED_ON)
    return found if isinstance(found, PlainSession) else None
