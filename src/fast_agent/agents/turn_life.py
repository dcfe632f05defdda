"""The life of a turn: recorded, kept and ended the same way for every type of agent.

The work of a turn adds to a draft of the conversation, which replaces the remembered one in one
step, so that no reader ever sees a tool call without its result:

* a finished turn leaves all its messages;
* a cancelled turn leaves what was said and done so far, and a note in place of the answer, so that
  the next user message may follow;
* a turn that fails leaves nothing, so that the same message can be sent again. Where the work says
  that its messages are worth keeping, it leaves them like a cancelled one.
"""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVarTuple

from anyio import CancelScope

from fast_agent.agents.budget import Meter
from fast_agent.agents.events import Origin, TurnFinished, TurnStarted, Warned, log_warnings
from fast_agent.agents.turn_context import TurnResult
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.message import Message
from fast_agent.sessions.cumulative import Entry
from fast_agent.tools.result import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from fast_agent.agents.events import Event
    from fast_agent.agents.history.journal import HistoryWriter, TurnJournal
    from fast_agent.agents.history.memory import Memory
    from fast_agent.agents.turn_context import SteeringQueue, TurnContext
    from fast_agent.messages.history import History
    from fast_agent.messages.message import StopReason, ToolResult
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject

log = getLogger(__name__)
Ts = TypeVarTuple("Ts")

NOTES: Mapping[StopReason, str] = {
    "cancelled": "[cancelled before an answer]",
    "error": "[no answer: the turn failed]",
}
"""What stands in place of an answer, by why there is none."""


class Notify(Protocol):
    """Notifies the listener of an event: its type, and its fields behind `origin`."""

    def __call__(self, kind: Callable[[Origin, *Ts], Event], /, *facts: *Ts) -> None:
        """Notify the listener."""
        ...


def _ignore(kind: Callable[[Origin, *Ts], Event], /, *facts: *Ts) -> None:
    """Notify no listener, without making the event."""


class NullTurnJournal:
    """Records nothing, for a turn of a conversation that is not kept; see `TurnJournal`."""

    __slots__ = ()
    ended = True

    async def began(self, message: Message) -> None:
        """Record the start of the turn."""

    def asks(self, model: str) -> None:
        """Note the model that is asked."""

    async def reached(self, history: History) -> None:
        """Record the conversation before a step."""

    async def answered(self, message: Message, history: History, *, last: bool) -> None:
        """Record an answer."""

    async def tool_answered(self, result: ToolResult) -> None:
        """Record the result of a call."""

    async def end(
        self,
        stop_reason: str,
        history: History,
        *,
        kept: bool,
        external_messages: Sequence[Message] = (),
    ) -> None:
        """Record the end of the turn."""

    async def end_best_effort(
        self,
        stop_reason: str,
        history: History,
        *,
        kept: bool,
        external_messages: Sequence[Message] = (),
    ) -> None:
        """Record the end of a turn that is failing."""

    async def record_failure(self, stop_reason: str) -> None:
        """Record that the turn left nothing."""


NO_JOURNAL: Final = NullTurnJournal()


class TurnLife:
    """One turn of an agent, around its work: `async with life: … await life.finish(answer)`.

    Args:
        turn_id: The turn's id.
        message: The user's message.
        memory: What the agent remembers; its lock is held.
        context: Where the turn stands.
        meters: The agent's own meter, and the one its limits hold for.
        steering: The agent's steering; that of a workflow around it goes before.

    Attributes:
        origin: The turn, as events name it.
        message: The user's message.
        is_heard: Whether a listener is notified of the turn's events.
        notify: Notifies it.
        draft: The conversation with what the turn added so far.
        start: The index of the turn's first message in it.
        external_messages: Messages of children that follow the turn in its agent's conversation.
        own: What the agent itself used in the turn.
        meters: What a model request of the agent is charged to.
        context: Where the turn stands.
        steering: The messages a user sends into the turn.
        journal: Records the turn.
        keeps_failure: Whether a failed turn leaves its messages.
        trims: Whether only the last tool calls stay in what the model is given.
        is_settled: Whether the conversation was replaced by the draft.
        result: What the turn returned; set by `finish`.
    """

    __slots__ = (
        "_base",
        "_below",
        "_held",
        "_is_kept",
        "_limited",
        "_listener",
        "_memory",
        "context",
        "draft",
        "external_messages",
        "is_heard",
        "is_settled",
        "journal",
        "keeps_failure",
        "message",
        "meters",
        "notify",
        "origin",
        "own",
        "result",
        "start",
        "steering",
        "trims",
    )

    result: TurnResult

    def __init__(
        self,
        turn_id: str,
        message: Message,
        memory: Memory,
        context: TurnContext,
        meters: tuple[Meter, Meter],
        steering: SteeringQueue,
    ) -> None:
        own, self._limited = meters
        self._memory = memory
        listener = context.listener
        self._listener = listener
        self.is_heard = listener is not log_warnings
        self.notify: Notify = self._notify if self.is_heard else _ignore
        self._below: Meter | None = None
        self._held: Event | None = None
        self._is_kept = False
        self._base, self.draft = memory.begin()
        self.start = len(self.draft.history)
        self.message = message
        self.origin = Origin(own.owner, turn_id, context.parent_call_id)
        self.own = Meter(own.owner)
        self.meters = (self.own, own, self._limited, *context.meters)
        self.context = context
        self.steering = steering if context.steering is None else context.steering
        self.external_messages: list[Message] = []
        self.keeps_failure = False
        self.trims = False
        self.is_settled = False
        self.journal = self._open_journal(memory.record)

    def _open_journal(self, record: HistoryWriter | None) -> TurnJournal | NullTurnJournal:
        context = self.context
        if context.journal is None:
            return NO_JOURNAL
        from fast_agent.agents.history.journal import TurnJournal

        return TurnJournal(
            context.journal,
            self.origin,
            context,
            record=record,
            start=self.start,
            usages=self.usages,
        )

    def _notify(self, kind: Callable[[Origin, *Ts], Event], /, *facts: *Ts) -> None:
        self._listener(kind(self.origin, *facts))

    def notify_at_end(self, event: Event) -> None:
        """Notify the listener of the last answer, once the end of the turn is recorded."""
        self._held = event

    def warn(self, text: str) -> None:
        """Report what does not stop the turn; without a listener it is logged."""
        self._listener(Warned(self.origin, text))

    def context_below(
        self, *, depth: int = 0, parent: str | None = None, steering: SteeringQueue | None = None
    ) -> TurnContext:
        """Return the context of what the turn starts; see `TurnContext.below`."""
        if self._below is None:
            self._below = Meter(self.origin.agent)
        return self.context.below(
            self.origin.turn_id,
            (self._below, self._limited),
            depth=depth,
            parent=parent,
            steering=steering,
        )

    def usages(self) -> tuple[Usage, Usage]:
        """Return what the agent itself used so far, and the same with everything it started."""
        own = self.own.usage
        if self._below is None:
            return own, own
        below = self._below.usage
        return own, own + below if own.requests else below

    async def __aenter__(self) -> Self:
        """Record and report the start.

        Raises:
            SessionError: It cannot be recorded.
        """
        try:
            await self.journal.began(self.message)
            self.notify(TurnStarted, self.message)
        except BaseException:
            self._memory.end()
            raise
        return self

    async def finish(
        self,
        answer: Message,
        stop_reason: str | None = None,
        *,
        structured: object = None,
        workflow: JsonObject | None = None,
    ) -> None:
        """Keep the conversation, and record the end.

        Args:
            answer: The answer; it stands in the draft.
            stop_reason: Why the turn ended; None takes the answer's own.
            structured: The value of a structured answer, or None.
            workflow: What a workflow did on the way; None for an agent.

        Raises:
            SessionError: It cannot be recorded.
        """
        said = self._settle()
        reason = stop_reason or answer.stop_reason or "endTurn"
        draft = self.draft
        await self.journal.end(
            reason, draft.history, kept=self._is_kept, external_messages=self.external_messages
        )
        if self._held is not None:
            self._notify_held()
        own, tree = self.usages()
        self.result = TurnResult(
            self.origin.turn_id,
            answer,
            reason,
            own,
            tree,
            said,
            structured,
            workflow,
            tuple(self.external_messages),
            draft.use,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Report the end, or abandon the turn where the work failed or was cancelled.

        Raises:
            RunError: The work raised what is not an error of ours.
        """
        try:
            if error is None:
                done = self.result
                self.notify(
                    TurnFinished, done.stop_reason, done.message, done.usage, done.tree_usage
                )
            elif isinstance(error, FastAgentError):
                self._redact(error)
                await self._abandon("error", error.message)
            elif isinstance(error, Exception):
                agent = self.origin.agent
                log.error("a turn of agent `%s` failed", agent, exc_info=error)
                problem = RunError(f"agent `{agent}` failed: {describe_error(error)}")
                problem.__cause__ = error
                self._redact(problem)
                await self._abandon("error", problem.message)
                raise problem
            else:
                await self._abandon("cancelled", None)
        finally:
            self._memory.end()

    def _redact(self, error: FastAgentError) -> None:
        if self.context.redact is not None:
            error.hide(self.context.redact)

    async def _abandon(self, reason: StopReason, error: str | None) -> None:
        """End a turn that has no answer."""
        # What is remembered changes before the first `await`: no reader sees the turn half kept.
        if not self.is_settled and (self.keeps_failure or reason == "cancelled"):
            self._close(reason)
            self._settle()
        # The scope of a cancelled turn would raise at each `await`, and leave the turn open.
        with CancelScope(shield=True):
            if self.is_settled:
                history, kept = self.draft.history, self._is_kept
                await self.journal.end_best_effort(
                    reason, history, kept=kept, external_messages=self.external_messages
                )
            else:
                await self.journal.record_failure(reason)
        if self.is_settled and self.journal.ended:
            self._notify_held()
        self.notify(TurnFinished, reason, None, *self.usages(), error)

    def _close(self, reason: StopReason) -> None:
        """End the draft with an answer, so that a user message may follow."""
        draft = self.draft
        if len(draft.history) == self.start:
            draft.append(self.message)
        if draft.history[-1].role == "user":
            draft.append(Message.assistant(NOTES[reason], reason))

    def _settle(self) -> tuple[Message, ...]:
        """Replace the conversation by the draft; returns the messages of the turn.

        Messages of children follow the turn: within it, no provider would accept them.
        """
        self.is_settled = True
        draft, origin = self.draft, self.origin
        if self.trims:
            draft.trim()
        said = tuple(draft.history.iterate(self.start))
        transcript = self.context.transcript
        if transcript is not None:
            transcript.append(Entry(origin.agent, origin.turn_id, origin.parent_call_id, said))
        if self.external_messages:
            draft = draft.draft()
            behind = len(draft.history)
            draft.append_block(self.external_messages)
            self.external_messages = list(draft.history[behind:])
        self._is_kept = self._memory.keep(self._base, draft)
        return said

    def _notify_held(self) -> None:
        event, self._held = self._held, None
        if event is not None:
            self._listener(event)
