"""Prompt journal: writes that a prompt came together with what comes of it at once."""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Final

from fast_agent.errors import SessionError
from fast_agent.sessions.event import TurnBegan

if TYPE_CHECKING:
    from fast_agent.messages.history import History
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import Journal

_LOOKS_AGAIN: Final = 0.005


class PromptJournal:
    """A journal around another, for a client that shows a prompt itself.

    The beginning of a turn that nothing else started is written with the next event, and at the
    latest when the turn waits for anything: so early that nothing of it was sent to the client
    before. Where a turn ends without waiting, that saves it half of what writing costs.

    After something could not be written, every beginning is written at once until that goes well
    again, so that no model is asked for what cannot be kept.

    Args:
        inner: The other journal.
    """

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._held: deque[SessionEvent] = deque()
        self._writing = Lock()
        self._refused = False

    def is_due(self, *, top: bool) -> bool:
        """Whether the end of a turn is to be brought to the disk; see `Journal.is_due`."""
        return self._inner.is_due(top=top)

    def record(self, *events: SessionEvent) -> None:
        """Write events, or hold the beginning of a turn; see `Journal.record`.

        Raises:
            SessionError: They cannot be written, nor what was held.
        """
        first = events[0] if len(events) == 1 else None
        if isinstance(first, TurnBegan) and first.parent_call_id is None and not self._refused:
            self._held.append(first)
            get_running_loop().call_soon(self._write_held)
        else:
            self._write(events, sure=False)

    def settle(self, *events: SessionEvent) -> None:
        """Write events and bring them to the disk; see `Journal.settle`.

        Raises:
            SessionError: They cannot be written, nor what was held.
        """
        self._write(events, sure=True)

    def history(self, agent: str) -> History | None:
        """Give what an agent remembered before; see `Journal.history`.

        Raises:
            SessionError: It cannot be read, or what was held cannot be written.
        """
        self._write((), sure=False)
        return self._inner.history(agent)

    def compaction(self, agent: str) -> tuple[int, str] | None:
        """Return the last compaction of an agent's history; see `Journal.compaction`."""
        return self._inner.compaction(agent)

    @property
    def used(self) -> tuple[int, ...]:
        """What the turns written down used; see `Journal.used`."""
        return self._inner.used

    @property
    def transcript(self) -> CumulativeTranscript:
        """Everything said before; see `Journal.transcript`."""
        return self._inner.transcript

    def _write_held(self) -> None:
        """Write what is held; where that fails, the next to write something hears of it."""
        if not self._held:
            return
        if self._writing.locked():  # by a thread that waits for the disk
            get_running_loop().call_later(_LOOKS_AGAIN, self._write_held)
            return
        try:
            self._write((), sure=False)
        except SessionError:
            return

    def _write(self, events: tuple[SessionEvent, ...], *, sure: bool) -> None:
        write = self._inner.settle if sure else self._inner.record
        with self._writing:
            held = tuple(self._held)
            if not (held or events):
                return
            try:
                write(*held, *events)
            except BaseException:
                self._refused = True
                raise
            self._refused = False
            for _ in held:
                self._held.popleft()
