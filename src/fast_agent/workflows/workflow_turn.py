"""WorkflowTurn: what a workflow works with in one turn."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final

from anyio import CancelScope

from fast_agent.agents.budget import Meter
from fast_agent.agents.call_site import CallSite
from fast_agent.agents.cast import cast_of
from fast_agent.agents.child_call import call_child
from fast_agent.agents.events import Origin, Warned, WorkflowAdvanced
from fast_agent.errors import RunError
from fast_agent.sessions.cumulative import Entry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.child_history import HistoryRoute
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import Listener
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.scope import Scope
    from fast_agent.agents.steering import Steering
    from fast_agent.agents.turn_setup import TurnResult
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.history import History
    from fast_agent.messages.message import Message
    from fast_agent.runtime.blueprint import Workshop
    from fast_agent.text.json_value import JsonValue

log = getLogger(__name__)


class WorkflowTurn:
    """One turn of a workflow.

    Args:
        config: The workflow's card.
        workshop: What agents are made with.
        scope: Where the turn stands.
        meters: The workflow's own meter, and the one its limits hold for.
        members: The workflow's clones of its members, by name.
        bound: The shared members it holds on to, by name; None where it uses clones.
        conversation: What the workflow remembers from before this turn.
        output: The shape the answer must have, or None.
        steering: The messages a user sends into the workflow, for the member that is running.

    Attributes:
        origin: The turn, as events name it.
        history: What the workflow remembers from before this turn.
        adopted: What members leave in the workflow's conversation, behind this turn.
        own: What the workflow's own model used in this turn.
        tree: The same with everything the turn started.
    """

    __slots__ = (
        "_agent_meter",
        "_before",
        "_below",
        "_bound",
        "_config",
        "_deepest",
        "_members",
        "_workshop",
        "adopted",
        "history",
        "origin",
        "output",
        "own",
        "tree",
    )

    def __init__(
        self,
        config: AgentConfig,
        workshop: Workshop,
        scope: Scope,
        *,
        meters: tuple[Meter, Meter],
        members: dict[str, Agent],
        bound: Mapping[str, Agent] | None,
        conversation: Conversation,
        output: OutputShape | None,
        steering: Steering | None = None,
    ) -> None:
        turn_id = workshop.surroundings.new_turn_id()
        self._config = config
        self._workshop = workshop
        self._members = members
        self._bound = bound
        self._deepest = workshop.surroundings.max_depth
        self._before = conversation.draft()
        self.history: History = conversation.history
        self.adopted: list[Message] = []
        self.output = output
        self.origin = Origin(config.name, turn_id, scope.parent_call_id)
        self.own = Meter(config.name)
        self.tree = Meter(config.name)
        self._agent_meter, limited = meters
        self._below = scope.below(
            turn_id,
            (self.tree, limited),
            depth=1,
            parent=turn_id,
            steering=steering if scope.steering is None else scope.steering,
        )

    @property
    def listener(self) -> Listener | None:
        """Who hears of events, or None."""
        return self._below.listener

    def member(self, name: str) -> Agent:
        """Give a member by its card's name: the shared instance, or the workflow's own clone.

        Raises:
            FastAgentError: Its card cannot be run.
        """
        if self._bound is not None:
            bound = self._bound.get(name)
            return cast_of(self._below).agent(name) if bound is None else bound
        agent = self._members.get(name)
        if agent is None:
            agent = self._members[name] = self._workshop.clone(name, None)
        return agent

    @asynccontextmanager
    async def clone(self, name: str) -> AsyncGenerator[Agent]:
        """Give a fresh instance of a member, closed at the end: `async with turn.clone(name)`.

        Raises:
            FastAgentError: Its card cannot be run.
        """
        agent = self._workshop.clone(name, None)
        try:
            yield agent
        finally:
            with CancelScope(shield=True):
                await agent.aclose()

    async def ask(
        self, agent: Agent, message: Message | str, *, output: OutputShape | None = None
    ) -> TurnResult:
        """Let a member answer; what it uses counts for the workflow too.

        Args:
            agent: From `member` or `clone`.
            message: What it is asked.
            output: The shape its answer must have, or None.

        Raises:
            RunError: Agents are nested too deep.
            FastAgentError: Its turn could not be finished.
        """
        self._see_depth(agent.name)
        return await agent.generate(message, scope=self._below, output=output)

    @asynccontextmanager
    async def site(self, request: Message, calls: int) -> AsyncGenerator[CallSite]:
        """Open the workflow's side of calls that run at the same time.

        What members leave behind goes where the card wants it when the calls have ended.

        Args:
            request: The user's message of this turn.
            calls: How many calls there are.
        """
        before = self._before.draft()
        before.append(request)
        site = CallSite(before, self.warn, concurrent=calls > 1, cast=self._below.cast)
        try:
            yield site
        finally:
            await site.land()
            self.adopted += site.adopted

    async def call(
        self, name: str, message: Message, site: CallSite, index: int, route: HistoryRoute
    ) -> TurnResult:
        """Let a clone of a member answer, as a tool of an agent would; see `call_child`.

        Args:
            name: The member.
            message: What it is asked.
            site: From `site`.
            index: Which of the calls it is, from 0.
            route: Where the clone starts from, and where its messages go.

        Raises:
            RunError: Agents are nested too deep.
            FastAgentError: Its turn could not be finished.
        """
        self._see_depth(name)
        clone = partial(self._workshop.clone, name)
        return await call_child(clone, route, site, message, index=index, scope=self._below)

    def _see_depth(self, name: str) -> None:
        if self._below.depth > self._deepest:
            msg = f"agent `{name}` cannot be asked: agents may call each other"
            raise RunError(f"{msg} {self._deepest} deep at most")

    async def ask_own(
        self, agent: Agent, message: Message | str, *, output: OutputShape | None = None
    ) -> TurnResult:
        """The same for the workflow's own model, whose requests are the workflow's own."""
        below = self._below
        own = replace(
            below,
            meters=(self.own, self._agent_meter, *below.meters),
            depth=below.depth - 1,
        )
        return await agent.generate(message, scope=own, output=output)

    def tell(self, kind: str, **facts: JsonValue) -> None:
        """Tell listeners that a step became visible.

        Args:
            kind: A kind of `WorkflowAdvanced`.
            **facts: What there is to know of it, as plain JSON.
        """
        listener = self._below.listener
        if listener is not None:
            listener(WorkflowAdvanced(self.origin, kind, facts))

    def write_down(self, messages: tuple[Message, ...]) -> None:
        """Write the workflow's own messages into the transcript of the session."""
        transcript, origin = self._below.transcript, self.origin
        if transcript is not None:
            transcript.append(Entry(origin.agent, origin.turn_id, origin.parent_call_id, messages))

    def warn(self, text: str) -> None:
        """Tell a person something that does not stop the turn."""
        listener = self._below.listener
        if listener is None:
            log.warning("agent `%s`: %s", self._config.name, text)
        else:
            listener(Warned(self.origin, text))

    def warn_if_early(self, name: str, result: TurnResult) -> None:
        """Warn that a member's answer was cut off, where it was."""
        if result.stop_reason not in COMPLETE:
            self.warn(f"agent `{name}` ended early: {result.stop_reason}")


COMPLETE: Final = frozenset({"endTurn", "stopSequence"})
"""Why turns end whose answer is whole."""
