"""Journal: the seam that records turns and histories before they are shown."""

from __future__ import annotations

from dataclasses import fields
from logging import getLogger
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from fast_agent.agents.events import log_warnings
from fast_agent.errors import SessionError
from fast_agent.models.model import Usage
from fast_agent.sessions.event import (
    HistoryCleared,
    HistoryCompacted,
    HistoryExtended,
    HistoryReplaced,
    MessageAdded,
    ToolAnswered,
    TurnBegan,
    TurnEnded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.agents.events import Origin
    from fast_agent.agents.history.transcript import Compaction, Transcript
    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.messages.history import History
    from fast_agent.messages.message import Message, ToolResult
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import Journal

log = getLogger(__name__)

_counts_of = attrgetter(*[field.name for field in fields(Usage)])


class HistoryWriter:
    """What a journal holds of the history of one instance.

    After a failed write, the whole history is written again before the next turn,
    so that journal and memory agree again.

    Args:
        journal: The journal.
        agent: The agent's name.
        length: How many messages of the history the journal holds.
    """

    __slots__ = ("_agent", "_journal", "_length")

    def __init__(self, journal: Journal, agent: str, length: int) -> None:
        self._journal = journal
        self._agent = agent
        self._length: int | None = length

    def catch_up(self, conversation: Transcript) -> None:
        """Check that the journal matches a conversation, as before a turn.

        Raises:
            SessionError: It cannot be written.
        """
        if self._length != len(conversation.history):
            self.replaced(tuple(conversation.history))
            if conversation.compaction is not None:
                self.compacted(conversation.compaction)

    def compacted(self, compaction: Compaction) -> None:
        """Record that a summary replaces the first messages for the model.

        What cannot be written is written later, with the whole history.
        """
        made = HistoryCompacted(
            self._agent, compaction.start, compaction.summary, compaction.native
        )
        try:
            self._journal.record(made)
        except SessionError as error:
            self.mark_stale()
            log.warning("%s", error.message)

    def replaced(self, messages: Sequence[Message]) -> None:
        """Write that the history is now these messages.

        Raises:
            SessionError: It cannot be written.
        """
        self._journal.record(HistoryReplaced(self._agent, tuple(messages)))
        self._length = len(messages)

    def record_clear(self, left: int, *, everything: bool) -> None:
        """Write that the history was cleared; `left` messages stay.

        Raises:
            SessionError: It cannot be written.
        """
        self._journal.record(HistoryCleared(self._agent, everything))
        self._length = left

    def extended(self, messages: Sequence[Message], before: History) -> None:
        """Write that messages came to a history; what cannot be written is written later.

        Args:
            messages: The messages.
            before: What stands before them.
        """
        try:
            if self._length is None:
                self.replaced((*before, *messages))
                return
            self._journal.record(HistoryExtended(self._agent, tuple(messages)))
        except SessionError as error:
            self.mark_stale()
            log.warning("%s", error.message)
        else:
            self.mark_written(len(messages))

    def mark_written(self, number: int) -> None:
        """Record that the journal has these messages of a turn."""
        if self._length is not None:
            self._length += number

    def mark_stale(self) -> None:
        """Record that the journal does not match the memory."""
        self._length = None

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what was recorded.

        Raises:
            SessionError: Some of it cannot be written; the history is rewritten before the next
                turn.
        """
        try:
            await self._journal.barrier()
        except SessionError:
            self.mark_stale()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether it does not, because something could not be written."""
        return self._length is None


class TurnJournal:
    """Records one turn. What it records may be queued; each method waits until that is safe.

    Args:
        journal: The journal.
        origin: The turn.
        context: Where it stands.
        record: What the journal holds of the history the turn goes into; None where it goes into
            none that outlives it.
        start: The index of the turn's first message in its conversation.
        usages: Returns what the agent itself used in the turn, and that with all it started.

    Attributes:
        ended: Whether its end is written.
    """

    __slots__ = (
        "_context",
        "_is_recorded",
        "_journal",
        "_model",
        "_origin",
        "_pending",
        "_record",
        "_results",
        "_start",
        "_there",
        "_usages",
        "ended",
    )

    def __init__(
        self,
        journal: Journal,
        origin: Origin,
        context: TurnContext,
        *,
        record: HistoryWriter | None,
        start: int,
        usages: Callable[[], tuple[Usage, Usage]],
    ) -> None:
        self._journal = journal
        self._origin = origin
        self._context = context
        self._record = record
        self._start = start
        self._usages = usages
        self._there: list[Message] = []
        self._results: list[ToolResult] = []
        self._pending: list[MessageAdded] = []
        self._is_recorded = False
        self.ended = False
        self._model: str | None = None

    async def began(self, message: Message) -> None:
        """Record the start of the turn.

        Raises:
            SessionError: It cannot be recorded.
        """
        origin = self._origin
        event = TurnBegan(
            turn_id=origin.turn_id,
            agent=origin.agent,
            parent_call_id=origin.parent_call_id,
            depth=self._context.depth,
            keeps=self._record is not None,
            message=message,
        )
        try:
            self._journal.record(event)
            await self._journal.barrier()
        except SessionError:
            self._mark_stale()
            raise
        self._there.append(message)

    def asks(self, model: str) -> None:
        """Note the model that is asked; the end of the turn names it."""
        self._model = model

    async def reached(self, history: History) -> None:
        """Write what of the conversation is not written yet.

        Args:
            history: The conversation of the turn; the turn's own messages start at its start.

        Raises:
            SessionError: It cannot be written.
        """
        self._gather(history)
        await self._write()

    def _gather(self, history: History) -> None:
        there = self._there
        # A hook may have replaced the last message.
        first = max(0, len(there) - 1)
        for index, message in enumerate(history.iterate(self._start + first), first):
            if index == len(there) or there[index] is not message:
                self._put(index, message)

    async def answered(self, message: Message, history: History, *, last: bool) -> None:
        """Write an answer that comes next in the conversation.

        If it is not shown before the turn continues, it is written with what comes next.

        Args:
            message: The answer.
            history: The conversation before it.
            last: Whether the turn ends with it, and it is not shown before that is written.

        Raises:
            SessionError: It cannot be written.
        """
        self._put(len(history) - self._start, message)
        if message.tool_calls or not (last or self._context.listener is log_warnings):
            await self._write()

    async def tool_answered(self, result: ToolResult) -> None:
        """Write the result of a call of the last answer.

        Raises:
            SessionError: It cannot be written.
        """
        self._record_pending(ToolAnswered(self._origin.turn_id, result))
        self._results.append(result)
        await self._journal.barrier()

    async def end(
        self,
        stop_reason: str,
        history: History,
        *,
        kept: bool,
        external_messages: Sequence[Message] = (),
    ) -> None:
        """Record the end of the turn, and sync it to disk if a sync is due.

        Args:
            stop_reason: Why it ended.
            history: The conversation with the turn in it.
            kept: Whether its messages are in the history they were to go into.
            external_messages: Messages of children that stand behind them there.

        Raises:
            SessionError: It cannot be recorded.
        """
        record, journal = self._record if kept else None, self._journal
        try:
            if not self._is_recorded:
                self._gather(history)
                event = self._event(stop_reason, kept=kept)
                if journal.is_due(top=self._origin.parent_call_id is None):
                    from anyio.to_thread import run_sync

                    await run_sync(journal.record_durably, *self._pending, event)
                    self._pending.clear()
                else:
                    self._record_pending(event)
                self._is_recorded = True
            await journal.barrier()
        except BaseException:
            self._mark_stale()
            raise
        self.ended = True
        if record is not None:
            record.mark_written(len(self._there))
            if external_messages:
                record.extended(external_messages, history)

    async def end_best_effort(
        self,
        stop_reason: str,
        history: History,
        *,
        kept: bool,
        external_messages: Sequence[Message] = (),
    ) -> None:
        """Record the end of a turn that is failing; what cannot be recorded is only logged."""
        if self.ended:
            return
        try:
            await self.end(stop_reason, history, kept=kept, external_messages=external_messages)
        except SessionError as error:
            log.warning("%s", error.message)

    async def record_failure(self, stop_reason: str) -> None:
        """Write that it failed and left nothing; what cannot be written is only logged."""
        if self.ended:
            return
        ended = self._event(stop_reason, kept=False, place="dropped")
        try:
            self._journal.record(ended)
            await self._journal.barrier()
            self.ended = True
        except SessionError as error:
            # The turn stays open there; were the history not written again before the next one, it
            # would be closed behind that when the session is resumed.
            self._mark_stale()
            log.warning("%s", error.message)

    def _mark_stale(self) -> None:
        """Write the history again: what was queued before a failed write may be lost too."""
        if self._record is not None:
            self._record.mark_stale()

    def _event(
        self, stop_reason: str, *, kept: bool, place: Literal["dropped"] | None = None
    ) -> TurnEnded:
        transcript = self._context.transcript
        listed = transcript is None or transcript is self._journal.transcript
        own, whole = self._usages()
        is_top = self._origin.parent_call_id is None
        return TurnEnded(
            self._origin.turn_id,
            stop_reason,
            kept=kept and self._record is not None,
            place=place or ("listed" if listed else "held"),
            used=_counts_of(whole) if is_top else (),  # else the turn above counts it too
            own=_counts_of(own) if own.requests or own.tool_calls else (),
            model=self._model,
        )

    def _put(self, index: int, message: Message) -> None:
        if index < len(self._there):
            self._there[index] = message
        else:
            self._there.append(message)
            if self._is_known(message):
                return
        pending = [event for event in self._pending if event.index != index]
        self._pending = [*pending, MessageAdded(self._origin.turn_id, index, message)]

    async def _write(self) -> None:
        """Record what is pending, and wait until it is safe."""
        self._record_pending()
        await self._journal.barrier()

    def _record_pending(self, *events: SessionEvent) -> None:
        """Record what is pending, and events after it; what cannot be recorded stays pending."""
        if self._pending or events:
            self._journal.record(*self._pending, *events)
            self._pending.clear()

    def _is_known(self, message: Message) -> bool:
        """Whether a message holds nothing but the results that were written one by one."""
        results, self._results = self._results, []
        if not results or message.content or len(results) != len(message.tool_results):
            return False
        known = {id(result) for result in results}
        return all(id(result) in known for result in message.tool_results)
