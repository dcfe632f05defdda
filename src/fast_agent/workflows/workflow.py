"""Workflow: an agent that has other agents do the work; what all its types have in common.

A blueprint is a card of a workflow's type made ready once. Messages quote texts in tags that they
cannot leave.
"""

from __future__ import annotations

from abc import abstractmethod
from logging import getLogger
from typing import TYPE_CHECKING, Final, TypeAlias

from anyio import CancelScope

from fast_agent.agents.conversation import conversation_of
from fast_agent.agents.live_agent import LiveAgent
from fast_agent.cards.agent_config import NO_PARAMS
from fast_agent.cards.fields import default_of
from fast_agent.cards.set_check import referred_names
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.message import Message, TextContent
from fast_agent.prompt.instruction import attribute, escaped
from fast_agent.runtime.blueprint import templates_of
from fast_agent.text.frozen import frozen
from fast_agent.workflows.workflow_turn import WorkflowTurn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import Outcome, TurnContext
    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.cards.agent_config import AgentConfig, UsageLimits
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Content
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.workflows.brain import CoordinatorModel

log = getLogger(__name__)


@frozen(kw_only=True)
class WorkflowSetup:
    """What an instance of a workflow is made from.

    Args:
        config: Its card.
        context: What its members are made with.
        turn: The context of its turns by default.
        templates: What its conversation starts with.
        shared: It is the shared instance, and works with the shared instances of its members.
        limits: Bounds for it and everything it starts, or None.
        brain: Its own model; None for a type that has none.
    """

    config: AgentConfig
    context: RuntimeContext
    turn: TurnContext
    templates: Iterable[Message] = ()
    shared: bool = False
    limits: UsageLimits | None = None
    brain: CoordinatorModel | None = None


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
            setup.turn,
            templates=setup.templates,
            remembers=remembers,
            limits=setup.limits,
            new_id=setup.context.options.new_turn_id,
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
    def brain(self) -> CoordinatorModel:
        """Its own model; only for the types that have one."""
        brain = self._setup.brain
        if brain is None:
            raise RunError(f"workflow `{self.name}` has no model of its own")
        return brain

    def expect_turn(self, context: TurnContext) -> None:
        """Hold on to its members before the turn waits; see `LiveAgent.expect_turn`."""
        if context.conversation is not None:
            self.bind(conversation_of(context))

    def bind(self, conversation: Conversation) -> None:
        """Hold on to the shared instances of its members, and theirs, for as long as it lives.

        A member that becomes another one makes this another workflow too; turns that began before
        end with the members there were.

        Args:
            conversation: The conversation it belongs to.
        """
        if self._bound is not None or not self._setup.shared:
            return
        self._bound = {}
        for name in dict.fromkeys(referred_names(self.config)):
            try:
                member = self._bound[name] = conversation.agent(name)
            except FastAgentError:
                continue  # reported once it is asked
            if isinstance(member, Workflow):
                member.bind(conversation)

    async def work(self, life: TurnLife, output: OutputShape | None) -> None:
        """Run the members for a turn; see `LiveAgent.work`."""
        turn = WorkflowTurn(
            self.config,
            self._setup.context,
            life,
            members=self._members,
            bound=self._bound,
            output=output,
        )
        outcome = await self.run(life.message, turn)
        life.draft.append(life.message)
        life.draft.append(outcome.message)
        await life.finish(
            outcome.message,
            outcome.stop_reason,
            structured=outcome.structured,
            workflow=outcome.workflow,
        )

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


SHORT: Final = 2_000
"""Longest text of one answer in the record of a workflow, in characters."""


def tagged(tag: str, text: str, **attributes: str) -> str:
    """Wrap a string in two tags.

    Args:
        tag: The element's name.
        text: The text; it is escaped, and so can neither close the element nor open another.
        **attributes: Attributes of the element.
    """
    written = "".join([attribute(name, value) for name, value in attributes.items()])
    return f"<{tag}{written}>\n{escaped(text.strip())}\n</{tag}>"


def request_text(request: Message) -> str:
    """Wrap the text of a request in tags."""
    return tagged("request", request.text)


def blocks_of(message: Message) -> tuple[Content, ...]:
    """Return what is not text in a message, to be passed on with the tagged texts."""
    content = message.content
    if len(content) == 1 and isinstance(content[0], TextContent):
        return ()
    return tuple([block for block in content if not isinstance(block, TextContent)])


def excerpt(text: str, limit: int = SHORT) -> str:
    """Cut a string for a record.

    Args:
        text: The text.
        limit: Most characters kept.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [{len(text) - limit} characters more]"


def briefing(parts: Iterable[str], *sources: Message) -> Message:
    """Make a user message.

    Args:
        parts: Its paragraphs; empty ones are left out.
        sources: Messages whose images, sounds and resources go along.
    """
    text = "\n\n".join([part for part in parts if part])
    blocks = [block for source in sources for block in blocks_of(source)]
    return Message("user", (TextContent(text), *blocks))


MakeWorkflow: TypeAlias = "Callable[[WorkflowSetup], Workflow]"
"""Makes an instance of a type: its class, as a rule."""


class WorkflowBlueprint:
    """The blueprint of a card of a workflow's type.

    Args:
        card: The card.
        context: What it is made with.
        make: Makes an instance of the type.
        brain: The workflow's own model; None for a type that has none.

    Raises:
        HistoryError: A file of its `messages` cannot be read.
    """

    def __init__(
        self,
        card: Card,
        context: RuntimeContext,
        make: MakeWorkflow,
        *,
        brain: CoordinatorModel | None = None,
    ) -> None:
        self._config = card.config
        self._context = context
        self._make = make
        self._brain = brain
        options = context.options
        own = card.config.request_params or NO_PARAMS
        params = options.params.over(own).over(context.settings.request_params)
        self._limits = params.usage_limits
        self._templates = templates_of(card.config, options.workspace)

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the MCP servers its own model uses; its members need their own."""
        return () if self._brain is None else self._brain.servers

    def instance(
        self,
        messages: Iterable[Message] | None = None,
        *,
        shared: bool = False,
        turn: TurnContext | None = None,
    ) -> Workflow:
        """Make an instance; see `Blueprint.instance`."""
        return self._make(
            WorkflowSetup(
                config=self._config,
                context=self._context,
                turn=self._context.turn if turn is None else turn,
                templates=self._templates if messages is None else messages,
                shared=shared,
                limits=self._limits,
                brain=self._brain,
            )
        )
