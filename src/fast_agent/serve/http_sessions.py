"""Sessions of clients that opened with a handshake over HTTP, by the id they send."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from logging import getLogger
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.errors import FastAgentError
from fast_agent.rpc.calls import PendingRequests, RunningCalls
from fast_agent.serve.fair_share import FairShare
from fast_agent.serve.resource_server import NotificationQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fast_agent.serve.resource_server import ResourceServer

SESSION_ID: Final = b"mcp-session-id"
"""The header with the id of a session."""

MAX_SESSIONS: Final = 1000
"""Maximum number of sessions that are open at once."""

IDLE_SECONDS: Final = 1800.0
"""How long a session is held of which no request comes."""

_CHECK_SECONDS: Final = 60.0

log = getLogger(__name__)


class HttpSession:
    """A session.

    Args:
        name: Its id, which the client sends.
        owner: Who the client is.
        server: The server it belongs to.

    Attributes:
        mailbox: Collects notifications that belong to no request.
        session: The client, as the server knows it.
        calls: Its requests that are being answered.
        pending: Requests to it that have no answer yet.
        stream: The scope of its stream of notifications; None if it has none open.
        using: How many of its requests and streams are open.
        used_at: When the last of them ended, in seconds of the clock.
    """

    __slots__ = (
        "calls",
        "mailbox",
        "name",
        "owner",
        "pending",
        "session",
        "stream",
        "used_at",
        "using",
    )

    def __init__(self, name: bytes, owner: str, server: ResourceServer) -> None:
        self.name = name
        self.owner = owner
        self.mailbox = NotificationQueue()
        self.session = server.service.open(self.mailbox.put)
        self.session.opened = "handshake"
        self.calls = RunningCalls()
        self.pending = PendingRequests(cancel_method="notifications/cancelled")
        self.stream: anyio.CancelScope | None = None
        self.using = 0
        self.used_at = 0.0


class HttpSessions:
    """The sessions that are open.

    Args:
        server: The server they belong to.
        clock: Seconds that never go back.
        new_id: Returns unguessable ids.
    """

    def __init__(
        self,
        server: ResourceServer,
        clock: Callable[[], float] = monotonic,
        new_id: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self._server = server
        self._clock = clock
        self._new_id = new_id
        self._open: dict[bytes, HttpSession] = {}
        self._shares: FairShare[bytes] = FairShare(MAX_SESSIONS)

    def __len__(self) -> int:
        return len(self._open)

    def find(self, name: bytes) -> HttpSession | None:
        """Return the open session of an id; None if there is none."""
        return self._open.get(name)

    async def new(self, owner: str) -> HttpSession | None:
        """Open a session; another one ends if there are as many as can be.

        Returns:
            The session, which is in use until `used` says otherwise; None if there is no room.
        """
        while self._shares.full:  # while one ends, another client may take its place
            name = self._shares.to_end(owner, lambda one: not self._open[one].using)
            if name is None:
                return None
            await self.close(self._open[name])
        opened = HttpSession(self._new_id().encode(), owner, self._server)
        opened.used_at = self._clock()
        self._open[opened.name] = opened
        self._shares.add(opened.name, owner)
        return opened

    @contextmanager
    def used(self, opened: HttpSession) -> Generator[None]:
        """Hold a session while a request of it is answered or a stream is open."""
        opened.using += 1
        try:
            yield
        finally:
            opened.using -= 1
            opened.used_at = self._clock()
            self._shares.use(opened.name)

    async def close(self, opened: HttpSession) -> None:
        """Close a session, and all that is under way in it.

        It is gone for its client, whatever fails then: that is logged.
        """
        if self._open.pop(opened.name, None) is None:
            return
        self._shares.remove(opened.name)
        opened.calls.cancel_all()
        opened.pending.close()
        opened.mailbox.close()
        if opened.stream is not None:
            opened.stream.cancel()
        with anyio.CancelScope(shield=True):
            try:
                await self._server.close(opened.session)
            except FastAgentError as error:
                log.warning("cannot close a session: %s", error.message)
            except Exception:  # a task boundary: other sessions continue
                log.exception("cannot close a session")

    async def expire(self) -> None:
        """Close the sessions that were not used for long."""
        end = self._clock() - IDLE_SECONDS
        for opened in tuple(self._open.values()):
            if not opened.using and opened.used_at < end:
                await self.close(opened)

    async def look_after(self) -> None:
        """Close sessions that were not used for long until this is cancelled; then close all."""
        try:
            while True:
                await anyio.sleep(_CHECK_SECONDS)
                await self.expire()
        finally:
            for opened in tuple(self._open.values()):
                await self.close(opened)
