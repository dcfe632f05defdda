"""Journal: how the turns of live agents get into a session's log, and their past out of it."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from fast_agent.messages.history import History
from fast_agent.sessions.cumulative import CumulativeTranscript
from fast_agent.sessions.event import (
    BlockListed,
    HistoryCleared,
    HistoryCompacted,
    HistoryExtended,
    HistoryReplaced,
    TurnBegan,
    TurnEnded,
    row_of,
)
from fast_agent.sessions.state import state_of
from fast_agent.text.garbage_collection import collection_paused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.sessions.cumulative import Entry
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.log import EventLog
    from fast_agent.sessions.state import SessionState
    from fast_agent.steps.steps import Steps

_REMEMBERED = (TurnBegan, HistoryReplaced, HistoryExtended, HistoryCleared, HistoryCompacted)


class Journal(Protocol):
    """Records turns and histories, and returns those recorded earlier."""

    @property
    def session_id(self) -> str:
        """The session that is recorded."""
        ...

    def is_due(self, *, top: bool) -> bool:
        """Whether the end of a turn is to be brought to the disk; `top` where none is above it."""
        ...

    def record(self, *events: SessionEvent) -> None:
        """Write events, or queue them to be written in order, all or none.

        Await `barrier` before anything of them is shown, and before a step that must not be
        repeated.

        Raises:
            SessionError: They cannot be written, or earlier ones could not.
        """
        ...

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what was recorded.

        Raises:
            SessionError: Some of it cannot be written.
        """
        ...

    def record_durably(self, *events: SessionEvent) -> None:
        """Write events and bring them to the disk; waits for the disk, in a worker thread.

        Raises:
            SessionError: They cannot be written.
        """
        ...

    def history(self, agent: str) -> History | None:
        """Return what an agent remembered before; None if it is unknown.

        Raises:
            SessionError: It cannot be read.
        """
        ...

    def compaction(self, agent: str) -> HistoryCompacted | None:
        """Return the last compaction of an agent's history; None without one.

        Raises:
            SessionError: It cannot be read.
        """
        ...

    @property
    def steps(self) -> Steps | None:
        """What carries the turns that are written here; None where nothing does."""
        ...

    @property
    def used(self) -> tuple[int, ...]:
        """What the recorded turns used, in the order of the counts of `Usage`."""
        ...

    @property
    def transcript(self) -> CumulativeTranscript:
        """Everything said before, and where turns are added from now on."""
        ...


class SessionJournal:
    """Writes events as they happen.

    Args:
        session_id: The session.
        log: Where to.
        state: What the log amounted to when the session was opened.
        steps: What carries its turns, or None.
    """

    __slots__ = ("_log", "_state", "_touched", "_transcript", "_used", "session_id", "steps")

    def __init__(
        self, session_id: str, log: EventLog, state: SessionState, steps: Steps | None = None
    ) -> None:
        self.session_id = session_id
        self.steps = steps
        self._log = log
        self._state = state
        self._touched: set[str] = set()
        self._used = [state.used]
        self._transcript = CumulativeTranscript(state.entries, on_block=self._list)

    def is_due(self, *, top: bool) -> bool:
        """Whether the end of a turn is to be brought to the disk.

        Args:
            top: Whether nothing else started the turn. Others are brought there only where so much
                was written that it is to be tidied up.
        """
        return self._log.is_long or (top and self._log.is_due)

    def record(self, *events: SessionEvent) -> None:
        """Write events, or queue them to be written in order, all or none.

        Raises:
            SessionError: They cannot be written, or earlier ones could not.
        """
        self._touch(events)
        self._log.append(*map(row_of, events))
        self._count(events)

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what was recorded.

        Raises:
            SessionError: Some of it cannot be written.
        """
        await self._log.barrier()

    def record_durably(self, *events: SessionEvent) -> None:
        """Write events and bring them and all before them to the disk, past a loss of power.

        It waits for the disk; call it from a worker thread.

        Raises:
            SessionError: They cannot be written; the log is as it was.
        """
        self._touch(events)
        self._log.append_durably(*map(row_of, events))
        self._count(events)

    def history(self, agent: str) -> History | None:
        """Return what an agent remembers; if it changed, the log is read again.

        A turn that is running is not in it.

        Returns:
            Its messages; None where the session knows nothing of it.

        Raises:
            SessionError: A message is damaged.
        """
        with collection_paused():
            messages = self._state_for(agent).history(agent)
            return None if messages is None else History(messages)

    def compaction(self, agent: str) -> HistoryCompacted | None:
        """Return the last compaction of an agent's history; None without one.

        Raises:
            SessionError: The log is damaged.
        """
        return self._state_for(agent).compaction(agent)

    def _state_for(self, agent: str) -> SessionState:
        if agent in self._touched:
            return state_of(self._log, running=False)
        return self._state

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

    def _touch(self, events: Iterable[SessionEvent]) -> None:
        """Mark agents that remember more than the state contains."""
        for event in events:
            if isinstance(event, _REMEMBERED):
                self._touched.add(event.agent)

    def _count(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            if isinstance(event, TurnEnded) and event.used:
                # Worker threads come here too, so nothing is read before it is written.
                self._used.append(event.used)

    def _list(self, entries: tuple[Entry, ...]) -> None:
        self.record(BlockListed(tuple(entry.turn_id for entry in entries)))
