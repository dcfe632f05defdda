"""A journal that can be made to refuse, and that records what was written and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sessions.wrapped_journal import WrappedJournal

from fast_agent.errors import SessionError
from fast_agent.sessions.event import TurnEnded

if TYPE_CHECKING:
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import SessionJournal


class Refusing(WrappedJournal):
    """A journal that stops to write after some events, and notes which are brought to the disk."""

    def __init__(self, inner: SessionJournal, written: int | None) -> None:
        super().__init__(inner)
        self._left = written
        self.refuses = True
        self.written: list[list[str]] = []
        self.settled: list[TurnEnded] = []

    def stop(self) -> None:
        """Write nothing from now on."""
        self._left, self.refuses = 0, True

    def record(self, *events: SessionEvent) -> None:
        self._count(events)
        self._inner.record(*events)

    def record_durably(self, *events: SessionEvent) -> None:
        self._count(events)
        self.settled += [event for event in events if isinstance(event, TurnEnded)]
        self._inner.record_durably(*events)

    def _count(self, events: tuple[SessionEvent, ...]) -> None:
        self.written.append([type(event).__name__ for event in events])
        if self._left is None or not self.refuses:
            return
        if self._left == 0:
            raise SessionError("no more")
        self._left -= 1
