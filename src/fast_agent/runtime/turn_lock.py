"""The lock that turns of one agent hold: one after another, and never waiting in a ring.

A turn may send messages to other agents, from a function or a hook. Two turns that send each other
messages at the same moment would wait for ever; the one that would close the ring is refused.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING

from anyio import Event
from anyio.lowlevel import checkpoint_if_cancelled

from fast_agent.errors import RunError

if TYPE_CHECKING:
    from contextvars import Token
    from types import TracebackType


class TurnLock:
    """A lock held by the turn that runs; the others get it in the order they came.

    `async with` raises RunError where waiting would never end. While it is free, taking it makes
    nothing that a waiting turn would need.
    """

    __slots__ = ("_hold", "_token", "_waiting")

    def __init__(self) -> None:
        self._hold: _Hold | None = None
        self._token: Token[tuple[_Hold, ...]] | None = None
        self._waiting: deque[Event] = deque()

    @property
    def is_around(self) -> bool:
        """Whether the running code is inside of the turn that holds it."""
        return self._hold is not None and self._hold in _AROUND.get()

    async def __aenter__(self) -> None:
        await checkpoint_if_cancelled()
        around = _AROUND.get()
        if self._hold is not None or self._waiting:
            await self._wait(around)
        self._hold = hold = _Hold()
        self._token = _AROUND.set((*around, hold))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _AROUND.reset(self._token)
        self._hold = self._token = None
        self._wake()

    def _wake(self) -> None:
        """Let the first that waits go on, if it is free."""
        if self._waiting and self._hold is None:
            self._waiting[0].set()

    async def _wait(self, around: tuple[_Hold, ...]) -> None:
        if self._waits_for(around):
            raise RunError(
                "agents were sent messages from inside each other's turns",
                hint="they would wait for each other; use a clone of one of them",
            )
        for hold in around:
            hold.waiting.append(self)
        turn = Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            self._waiting.remove(turn)
            self._wake()  # it may have been let go on just now
            raise
        finally:
            for hold in around:
                hold.waiting.remove(self)
        self._waiting.popleft()

    def _waits_for(self, around: tuple[_Hold, ...]) -> bool:
        """Say whether the turn that holds this waits, over others even, for one of these."""
        seen: set[_Hold] = set()
        pending = [self._hold]
        while pending:
            hold = pending.pop()
            if hold is None or hold in seen:
                continue
            if hold in around:
                return True
            seen.add(hold)
            pending.extend([lock._hold for lock in hold.waiting])  # noqa: SLF001
        return False


class _Hold:
    """One turn's hold of a lock, and the locks that what it started waits for."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[TurnLock] = []


_AROUND: ContextVar[tuple[_Hold, ...]] = ContextVar("turns_around", default=())
"""The holds of the turns that this task is inside of, the outermost first."""
