"""The requests open at one server: who waits, and until when."""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Generator

    from fast_agent.tools.human import Human


class OpenCall:
    """One request that waits for its answer."""

    __slots__ = ("agent_name", "human", "scope", "seconds")

    def __init__(
        self,
        agent_name: str | None,
        seconds: float,
        scope: anyio.CancelScope,
        human: Human | None = None,
    ) -> None:
        self.agent_name = agent_name
        self.human = human
        self.seconds = seconds
        self.scope = scope

    def renew(self) -> None:
        """Start the waiting time anew, because the server showed that it works."""
        if self.scope.deadline != inf:
            self.scope.deadline = anyio.current_time() + self.seconds


class OpenCalls:
    """All of them.

    A server may ask a person or a model before it answers; the time that takes is not the server's,
    so every deadline stands still meanwhile.
    """

    def __init__(self) -> None:
        self._calls: dict[OpenCall, None] = {}
        self._ended = anyio.Event()
        self._pauses = 0

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The agents that wait, each once, in the order of their calls."""
        return tuple(dict.fromkeys(call.agent_name for call in self._calls if call.agent_name))

    def person(self, usual: Human | None) -> Human | None:
        """Give the way to the person that a question of the server is for.

        Args:
            usual: The way to the person of conversations that have none of their own.

        Returns:
            None where calls of several persons are open: nobody can tell then whose the question
            is, and it must not reach the wrong one.
        """
        ways = [call.human or usual for call in self._calls if call.agent_name is not None]
        if not ways:
            return usual
        return ways[0] if all(way is ways[0] for way in ways) else None

    @contextmanager
    def waiting(
        self, agent_name: str | None, seconds: float, human: Human | None = None
    ) -> Generator[OpenCall]:
        """Wait for one answer, at most `seconds` of the server's own time.

        Raises:
            TimeoutError: The time is up.
        """
        with anyio.CancelScope() as scope:
            call = OpenCall(agent_name, seconds, scope, human)
            self._calls[call] = None
            scope.deadline = inf if self._pauses else anyio.current_time() + seconds
            try:
                yield call
            finally:
                del self._calls[call]
                self._ended.set()
        if scope.cancelled_caught:
            raise TimeoutError

    async def none_open(self) -> None:
        """Wait until no request waits for its answer."""
        while self._calls:
            self._ended = anyio.Event()
            await self._ended.wait()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let the deadlines stand still."""
        self._pauses += 1
        for call in self._calls:
            call.scope.deadline = inf
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                now = anyio.current_time()
                for call in self._calls:
                    call.scope.deadline = now + call.seconds
