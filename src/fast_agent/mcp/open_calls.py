"""The requests open at one server: who waits, and until when."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator

    from fast_agent.tools.human import Human


class TotalTimeError(TimeoutError):
    """A request took longer than it may in all, although the server showed that it works."""


class OpenCall:
    """One request that waits for its answer.

    Attributes:
        model_answers: How many model answers the server got for it.
        granted_answers: How many a user let it have over the limit of the server.
        refuses_answers: Whether it gets no more, because a user said so or none can be asked.
        http_status: The status of the HTTP answer to it, where there was one.
    """

    __slots__ = (
        "agent_name",
        "granted_answers",
        "http_status",
        "human",
        "model_answers",
        "refuses_answers",
        "scope",
        "seconds",
        "seconds_left",
        "stops_at",
    )

    def __init__(
        self,
        agent_name: str | None,
        seconds: float,
        scope: anyio.CancelScope,
        human: Human | None = None,
        *,
        total_seconds: float = inf,
    ) -> None:
        self.agent_name = agent_name
        self.human = human
        self.seconds = seconds
        self.scope = scope
        self.seconds_left = total_seconds
        self.stops_at = inf
        self.model_answers = 0
        self.granted_answers = 0
        self.refuses_answers = False
        self.http_status: int | None = None

    def renew(self) -> None:
        """Restart the waiting time, because the server showed that it works."""
        if self.scope.deadline != inf:
            self.scope.deadline = min(anyio.current_time() + self.seconds, self.stops_at)

    def pause(self) -> None:
        """Stop the deadlines."""
        if self.scope.deadline != inf:
            self.seconds_left = self.stops_at - anyio.current_time()
            self.scope.deadline = self.stops_at = inf

    def resume(self) -> None:
        """Restart the waiting time; the total time continues."""
        now = anyio.current_time()
        self.stops_at = now + self.seconds_left
        self.scope.deadline = min(now + self.seconds, self.stops_at)


CURRENT_CALL: Final[ContextVar[OpenCall | None]] = ContextVar("current_call", default=None)
"""The request that is sent: the transport runs in the context of its sender."""


class OpenCalls:
    """All of them.

    A server may ask a user or a model before it answers; the time that takes is not the server's,
    so every deadline is stopped during that time.
    """

    def __init__(self) -> None:
        self._calls: dict[OpenCall, None] = {}
        self._ended = anyio.Event()
        self._pauses = 0

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The agents that wait, each once, in the order of their calls."""
        return tuple(dict.fromkeys(call.agent_name for call in self._calls if call.agent_name))

    @property
    def count(self) -> int:
        """How many requests wait for their answer."""
        return len(self._calls)

    def human(self, usual: Human | None) -> Human | None:
        """Return the way to the user that a server's question is for.

        Args:
            usual: Asks the user of conversations that have none.

        Returns:
            None if calls of several users are open: it is unknown then whose the question
            is, and it must not reach the wrong one.
        """
        ways = [call.human or usual for call in self._calls if call.agent_name is not None]
        if not ways:
            return usual
        return ways[0] if all(way is ways[0] for way in ways) else None

    def charged(self, limit: int) -> OpenCall | None:
        """Return the call that the next model answer for the server is charged to.

        It is unknown which of several open calls it is for; each may have its share.

        Args:
            limit: Most model answers a call may have without a question to a user.

        Returns:
            One that may have more, else the first; None where no agent's call is open.
        """
        calls = [call for call in self._calls if call.agent_name is not None]
        for call in calls:
            if call.model_answers < call.granted_answers + limit:
                return call
        return calls[0] if calls else None

    @contextmanager
    def waiting(
        self,
        agent_name: str | None,
        seconds: float,
        human: Human | None = None,
        *,
        total_seconds: float = inf,
    ) -> Generator[OpenCall]:
        """Wait for one answer.

        Args:
            agent_name: The agent it is for, or None.
            seconds: Longest wait for a sign of the server, in its own time.
            human: Asks the user it is for, or None for the usual one.
            total_seconds: Longest wait in all, in the server's own time.

        Raises:
            TotalTimeError: The server gave signs, but the time in all is up.
            TimeoutError: The time is up.
        """
        scope = anyio.CancelScope()
        call = OpenCall(agent_name, seconds, scope, human, total_seconds=total_seconds)
        with scope:
            self._calls[call] = None
            if not self._pauses:
                call.resume()
            token = CURRENT_CALL.set(call)
            try:
                yield call
            finally:
                CURRENT_CALL.reset(token)
                del self._calls[call]
                self._ended.set()
        if scope.cancelled_caught:
            is_total = seconds < total_seconds and scope.deadline == call.stops_at
            raise TotalTimeError if is_total else TimeoutError

    async def none_open(self) -> None:
        """Wait until no request waits for its answer."""
        while self._calls:
            self._ended = anyio.Event()
            await self._ended.wait()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the deadlines."""
        self._pauses += 1
        for call in self._calls:
            call.pause()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                for call in self._calls:
                    call.resume()
