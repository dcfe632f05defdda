"""Workflow: an agent that has other agents do the work; what all its types have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING

from anyio import CancelScope

from fast_agent.agents.cast import cast_of
from fast_agent.agents.events import TurnFinished, TurnStarted
from fast_agent.agents.live_agent import LiveAgent
from fast_agent.agents.turn import NOTES
from fast_agent.agents.turn_setup import TurnResult
from fast_agent.cards.fields import default_of
from fast_agent.cards.references import referred_names
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.message import Message
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import describe_error
from fast_agent.workflows.workflow_turn import WorkflowTurn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.cast import Cast
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.journal import TurnJournal
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.scope import Scope
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.request_params import UsageLimits
    from fast_agent.messages.content import Content
    from fast_agent.messages.history import History
    from fast_agent.runtime.blueprint import Workshop
    from fast_agent.text.json_value import JsonObject
    from fast_agent.workflows.brain import Brain

log = getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowSetup:
    """What an instance of a workflow is made from.

    Args:
        config: Its card.
        workshop: What its members are made with.
        scope: Where its turns stand unless they are told otherwise.
        templates: What its conversation starts with.
        shared: It is the instance everybody shares, and works with the shared ones of its members.
        limits: Bounds for it and everything it starts, or None.
        brain: Its own model; None for a type that has none.
    """

    config: AgentConfig
    workshop: Workshop
    scope: Scope
    templates: Iterable[Message] = ()
    shared: bool = False
    limits: UsageLimits | None = None
    brain: Brain | None = None


@frozen
class Outcome:
    """What one run of a workflow gave.

    Args:
        message: The answer, of role `assistant`.
        workflow: What was done on the way, as plain JSON; `excerpt` keeps its texts short.
        structured: The value of a structured answer, or None.
        stop_reason: Why it ended; None takes the message's own.
    """

    message: Message
    workflow: JsonObject
    structured: object = None
    stop_reason: str | None = None


class Workflow(LiveAgent):
    """An agent that has other agents do the work.

    A type subclasses it and writes `run`. The conversation of a workflow holds what it was asked
    and what it answered; its members remember the rest, each by its own card. A turn that fails
    leaves nothing in it, so that the same message can be sent again; one that is cancelled leaves
    the message and a note.

    Args:
        setup: What it is made from.
    """

    def __init__(self, setup: WorkflowSetup) -> None:
        config = setup.config
        remembers = config.use_history
        if remembers is None:
            remembers = default_of("use_history", config.type) is not False
        super().__init__(
            config,
            setup.scope,
            templates=setup.templates,
            remembers=remembers,
            limits=setup.limits,
        )
        self._setup = setup
        self._members: dict[str, Agent] = {}
        self._bound: dict[str, Agent] | None = None

    @abstractmethod
    async def run(self, request: Message, turn: WorkflowTurn) -> Outcome:
        """Do the work of one turn.

        Args:
            request: The user's message.
            turn: The turn: its members, its events, the shape the answer must have.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        ...

    @property
    def brain(self) -> Brain:
        """Its own model; only for the types that have one."""
        brain = self._setup.brain
        if brain is None:
            raise RunError(f"workflow `{self.name}` has no model of its own")
        return brain

    def expect_turn(self, scope: Scope) -> None:
        """Hold on to its members before the turn waits; see `LiveAgent.expect_turn`."""
        if scope.cast is not None:
            self.bind(cast_of(scope))

    def bind(self, cast: Cast) -> None:
        """Hold on to the shared instances of its members, and theirs, for as long as it lives.

        A member that becomes another one makes this another workflow too; turns that began before
        end with the members there were.

        Args:
            cast: The conversation it belongs to.
        """
        if self._bound is not None or not self._setup.shared:
            return
        self._bound = {}
        for name in dict.fromkeys(referred_names(self.config)):
            try:
                member = self._bound[name] = cast.agent(name)
            except FastAgentError:
                continue  # told once it is asked
            if isinstance(member, Workflow):
                member.bind(cast)

    async def take_turn(
        self, message: Message, scope: Scope, output: OutputShape | None
    ) -> TurnResult:
        """Run one turn; see `LiveAgent.take_turn`."""
        memory = self._memory
        base, draft = memory.begin()
        turn = WorkflowTurn(
            self.config,
            self._setup.workshop,
            scope,
            meters=self._meters,
            members=self._members,
            bound=self._bound,
            conversation=draft,
            output=output,
            steering=self._steering,
        )
        try:
            journal = self._journal(turn, scope, len(draft.history))
            return await self._run(message, turn, base, draft, journal)
        finally:
            memory.end()

    def _journal(self, turn: WorkflowTurn, scope: Scope, start: int) -> TurnJournal | None:
        """Give what writes the turn down, if anything does."""
        if scope.journal is None:
            return None
        from fast_agent.agents.journal import TurnJournal

        return TurnJournal(
            scope.journal,
            turn.origin,
            scope,
            record=self._memory.record,
            start=start,
            spent=lambda: turn.tree.usage,
        )

    async def _run(
        self,
        message: Message,
        turn: WorkflowTurn,
        base: Conversation,
        draft: Conversation,
        journal: TurnJournal | None,
    ) -> TurnResult:
        listener = turn.listener
        if journal is not None:
            journal.began(message)
        if listener is not None:
            listener(TurnStarted(turn.origin, message))
        try:
            outcome = await self.run(message, turn)
        except FastAgentError as error:
            self._abandon(turn, journal, "error", error.message)
            raise
        except Exception as error:  # the boundary of a turn
            log.exception("a turn of workflow `%s` failed", self.name)
            self._abandon(turn, journal, "error", describe_error(error))
            raise RunError(f"agent `{self.name}` failed: {describe_error(error)}") from error
        except BaseException:
            note = Message.assistant(NOTES["cancelled"], "cancelled")
            said, adopted, kept = self._keep(turn, base, draft, (message, note))
            if journal is not None:
                journal.end_quietly("cancelled", said, kept=kept, adopted=adopted)
            self._abandon(turn, journal, "cancelled", None)
            raise
        answer = outcome.message
        said, adopted, kept = self._keep(turn, base, draft, (message, answer))
        if journal is not None:
            reason = outcome.stop_reason or answer.stop_reason or "endTurn"
            try:
                await journal.end_surely(reason, said, kept=kept, adopted=adopted)
            except BaseException as error:
                self._abandon(turn, journal, "error", describe_error(error))
                raise
        result = TurnResult(
            turn.origin.turn_id,
            answer,
            outcome.stop_reason or answer.stop_reason or "endTurn",
            turn.own.usage,
            turn.tree.usage,
            (message, answer),
            outcome.structured,
            outcome.workflow,
            tuple(turn.adopted),
        )
        if listener is not None:
            listener(
                TurnFinished(
                    turn.origin, result.stop_reason, answer, result.usage, result.tree_usage
                )
            )
        return result

    def _keep(
        self,
        turn: WorkflowTurn,
        base: Conversation,
        draft: Conversation,
        messages: tuple[Message, ...],
    ) -> tuple[History, tuple[Message, ...], bool]:
        """Hand the conversation over as it stays.

        Returns:
            The conversation up to this turn, what stands behind it, and whether it is remembered.
        """
        turn.write_down(messages)
        for message in messages:
            draft.append(message)
        said = draft.history
        draft.append_block(turn.adopted)
        return said, draft.history[len(said) :], self._memory.keep(base, draft)

    def _abandon(
        self, turn: WorkflowTurn, journal: TurnJournal | None, stop_reason: str, error: str | None
    ) -> None:
        if journal is not None:
            journal.dropped(stop_reason)
        if turn.listener is not None:
            own, tree = turn.own.usage, turn.tree.usage
            turn.listener(TurnFinished(turn.origin, stop_reason, None, own, tree, error))

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of the card's servers; see `Agent.read_resource`."""
        if self._setup.brain is None:
            msg = f"agent `{self.name}` has no servers to read `{uri}` from"
            raise RunError(msg, hint="an agent of type `agent` may have servers")
        return await self._setup.brain.read_resource(server, uri)

    async def release(self) -> None:
        """Close the clones of its members."""
        members, self._members = tuple(self._members.values()), {}
        self._bound = None
        problem: FastAgentError | None = None
        with CancelScope(shield=True):
            for member in members:
                try:
                    await member.aclose()
                except FastAgentError as error:
                    problem = problem or error
        if problem is not None:
            raise problem
