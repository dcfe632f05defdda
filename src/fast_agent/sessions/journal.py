"""Journal: how the turns of live agents get into a session's log, and their past out of it."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from fast_agent.messages.history import History
from fast_agent.sessions.collection import collection_paused
from fast_agent.sessions.cumulative import CumulativeTranscript
from fast_agent.sessions.event import (
    BlockListed,
    HistoryCleared,
    HistoryExtended,
    HistoryReplaced,
    TurnBegan,
    TurnEnded,
)
from fast_agent.sessions.row import row_of
from fast_agent.sessions.state import state_of

if TYPE_CHECKING:
    from fast_agent.sessions.cumulative import Entry
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.log import EventLog
    from fast_agent.sessions.state import SessionState


class SessionJournal:
    """Writes events as they happen.

    Args:
        log: Where to.
        state: What the log amounted to when the session was opened.
    """

    __slots__ = ("_log", "_state", "_touched", "_transcript", "_used")

    def __init__(self, log: EventLog, state: SessionState) -> None:
        self._log = log
        self._state = state
        self._touched: set[str] = set()
        self._used = [state.used]
        self._transcript = CumulativeTranscript(state.entries, on_block=self._list)

    def record(self, event: SessionEvent) -> None:
        """Write an event; once this returns, a killed process does not lose it.

        Raises:
            SessionError: It cannot be written; the log is as it was.
        """
        self._touch(event)
        self._log.append(row_of(event))
        self._count(event)

    def settle(self, event: SessionEvent) -> None:
        """Write an event and bring it and all before it to the disk, past a loss of power.

        It waits for the disk; call it from a worker thread.

        Raises:
            SessionError: It cannot be written; the log is as it was.
        """
        self._touch(event)
        self._log.append_surely(row_of(event))
        self._count(event)

    def history(self, agent: str) -> History | None:
        """Give what an agent remembers; where it changed since, the log is read anew.

        A turn that is running is not in it.

        Returns:
            Its messages; None where the session knows nothing of it.

        Raises:
            SessionError: A message is damaged.
        """
        with collection_paused():
            state = self._state
            if agent in self._touched:
                state = state_of(self._log, running=False)
            messages = state.history(agent)
            return None if messages is None else History(messages)

    @property
    def used(self) -> tuple[int, ...]:
        """What the turns of the session used, in the order of the counts of `Usage`."""
        return tuple(map(sum, zip_longest(*self._used, fillvalue=0)))

    @property
    def transcript(self) -> CumulativeTranscript:
        """The transcript of the session; what was before is read when that is first needed."""
        return self._transcript

    def restart(self, state: SessionState) -> None:
        """Take another state for what was before, as after a rewind."""
        self._state = state
        self._touched.clear()
        self._used = [state.used]
        self._transcript.restart(state.entries)

    def _touch(self, event: SessionEvent) -> None:
        """Note that an agent remembers more than the state tells."""
        if isinstance(event, TurnBegan | HistoryReplaced | HistoryExtended | HistoryCleared):
            self._touched.add(event.agent)

    def _count(self, event: SessionEvent) -> None:
        if isinstance(event, TurnEnded) and event.used:
            # Worker threads come here too, so nothing is read before it is written.
            self._used.append(event.used)

    def _list(self, entries: tuple[Entry, ...]) -> None:
        self.record(BlockListed(tuple(entry.turn_id for entry in entries)))
