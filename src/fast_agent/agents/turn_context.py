"""The context of a turn: what started it gives, what turns of an agent share, and the outcome.

`SteeringQueue` holds the messages that a user sends into a turn.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.agents.events import log_warnings
from fast_agent.config.settings import COMPACTION_SHARE
from fast_agent.errors import RunError
from fast_agent.messages.message import TextContent
from fast_agent.steps.steps import NULL_STEPS, here
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from fast_agent.agents.budget import Meter
    from fast_agent.agents.events import Listener
    from fast_agent.agents.output import OutputShape
    from fast_agent.cards.agent_config import AgentConfig, RequestParams
    from fast_agent.messages.history import ResultLimits
    from fast_agent.messages.message import Message
    from fast_agent.models.model import ContextUse, Model, Usage
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Place, Steps
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.allowed_calls import SkillPermits
    from fast_agent.tools.hooks import TurnHooks
    from fast_agent.tools.human import Human
    from fast_agent.tools.toolbox import ToolTable


class SteeringMessage:
    """A message that waits for the next boundary of a turn.

    Args:
        message: The user's message.

    Attributes:
        message: The user's message.
        taken: Whether the turn took it. One that is still waiting when the turn ends was not sent.
    """

    __slots__ = ("message", "taken")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.taken = False


class SteeringQueue:
    """The waiting messages of one agent, which its turns take at their boundaries.

    A workflow hands its own to its members, so that the member that is running takes them.
    """

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[SteeringMessage] = []
        self._running = 0

    def add(self, message: Message) -> SteeringMessage:
        """Add a message for the next boundary.

        Raises:
            RunError: Several members of a workflow run at the same time.
        """
        if self._running > 1:
            raise RunError(
                f"{self._running} agents are running at the same time; none can be steered alone",
                hint="send the message when the turn has ended",
            )
        waiting = SteeringMessage(message)
        self._waiting.append(waiting)
        return waiting

    def enter(self) -> None:
        """Count a turn that takes messages."""
        self._running += 1

    def leave(self) -> None:
        """Count a turn out."""
        self._running -= 1

    def take(self) -> list[Message]:
        """Return the waiting messages in order, and mark them as taken."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.taken = True
        return [one.message for one in waiting]

    def drop(self) -> None:
        """Drop what waits, as when the turn has ended."""
        self._waiting.clear()

    @property
    def waits(self) -> bool:
        """Whether a message waits."""
        return bool(self._waiting)


MAX_WITHOUT_TOOLS: Final = 3
"""Maximum number of model requests of a turn without tools.

One request is enough then. The others are for a model that calls a tool it was never given, and for
a structured answer that is put right.
"""


class SharedConversation(Protocol):
    """A conversation as its turns know it; `conversation_of` returns its agents."""

    @property
    def conversation(self) -> SharedConversation:
        """The whole conversation: this one, or the one whose turn it works for."""
        ...

    def require_loop(self) -> None:
        """Check that a turn starts in its event loop; see `Conversation.require_loop`."""
        ...


@frozen
class TurnContext:
    """Context a turn inherits from its caller.

    Args:
        meters: Meters to charge in addition to the turn's and the agent's own.
        listener: Notified of the events of turns.
        depth: How many agents stand above this one.
        parent_call_id: The tool call this turn answers, or the turn of the workflow it is a part
            of; None at the top.
        correlation_id: One id for everything a request set off; None makes the turn's id that id.
        charges: Where calls of server tools are entered while they are open, or None.
        transcript: Where turns are written when they end, or None.
        journal: Where they are recorded as they run, or None.
        conversation: The agents of the conversation the turn belongs to; None outside a runtime.
        human: Asks the user of this conversation, before that of the runtime, or None.
        redact: Hides secrets in the errors of tools; None hides none.
        steering: The messages a user sends into the workflow this turn is a part of, or None.
        steps: Who carries the run the turn belongs to.
        deps: The values the program gave its function tools.
        skill: The skill a user called by the turn's message, or None; for this turn only.
    """

    _: KW_ONLY
    meters: tuple[Meter, ...] = ()
    listener: Listener = log_warnings
    depth: int = 0
    parent_call_id: str | None = None
    correlation_id: str | None = None
    charges: OpenCallMeters | None = None
    transcript: CumulativeTranscript | None = None
    journal: Journal | None = None
    conversation: SharedConversation | None = None
    human: Human | None = None
    redact: Callable[[str], str] | None = None
    steering: SteeringQueue | None = None
    steps: Steps = NULL_STEPS
    deps: tuple[object, ...] = ()
    skill: SkillCall | None = None

    def below(
        self,
        turn_id: str,
        meters: tuple[Meter, ...],
        *,
        depth: int = 0,
        parent: str | None = None,
        steering: SteeringQueue | None = None,
    ) -> TurnContext:
        """Return the context of what a turn in this one starts.

        Args:
            turn_id: The turn.
            meters: Meters to charge in addition to those charged here.
            depth: How many agents come between.
            parent: What the turns below answer; None is what the turn itself does.
            steering: The messages a user sends into the turns below; None where there are none.
        """
        return TurnContext(
            meters=meters + self.meters,
            listener=self.listener,
            depth=self.depth + depth,
            parent_call_id=self.parent_call_id if parent is None else parent,
            correlation_id=self.correlation_id or turn_id,
            charges=self.charges,
            transcript=self.transcript,
            journal=self.journal,
            conversation=self.conversation,
            human=self.human,
            redact=self.redact,
            steering=steering,
            steps=self.steps,
            deps=self.deps,
        )

    def within(self, own: TurnContext) -> TurnContext:
        """Return this context, with the conversation of an instance's own if it has none."""
        if self.conversation is not None:
            return self
        return replace(self, conversation=own.conversation)


class OpenCallMeters:
    """Usage meters of open server-tool calls, which sampling requests are charged to."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[tuple[Meter, ...], Place]]] = {}

    @contextmanager
    def entered(self, agent: str, meters: tuple[Meter, ...]) -> Generator[None]:
        """Hold the meters of an agent's turn as long as one of its calls is open."""
        calls = self._open.setdefault(agent, [])
        call = meters, here()
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)

    def newest(self, agent: str) -> tuple[tuple[Meter, ...], Place]:
        """Return the meters and the place of the agent's newest open call; none where none is."""
        calls = self._open.get(agent)
        return calls[-1] if calls else ((), NULL_STEPS.top)


TOP = TurnContext()
"""Where a turn stands that nothing else started."""


@frozen
class CompactionPlan:
    """When and by whom a conversation is summarized.

    Args:
        share: The part of the context window, from 0 to 1, at which that is done; None for never,
            not even where a conversation is too long.
        ask: Asks another agent for the summary: (instruction, text, where it stands) to its
            answer; None asks the agent's own model.
        native: Whether the provider's own compact form is asked for first, where it has one.
    """

    share: float | None = COMPACTION_SHARE
    ask: Callable[[str, str, TurnContext], Awaitable[str]] | None = None
    native: bool = True


class Fork(Protocol):
    """Has another instance of an agent carry out a skill, which remembers nothing."""

    def __call__(
        self, skill: SkillCall, context: TurnContext, output: OutputShape | None = None
    ) -> Awaitable[TurnResult]:
        """Run its turn.

        Args:
            skill: The skill, and the message for the instance.
            context: Where its turn stands.
            output: The shape the answer must have, or None.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        ...


DEFAULT_PLAN: Final = CompactionPlan()
"""The agent's own model summarizes, where nothing else is said."""


class ToolSource(Protocol):
    """Where the tools of an agent come from."""

    async def table(self, *, reads_results: bool = False) -> ToolTable:
        """Return the tools now; cheap when nothing changed.

        Args:
            reads_results: Whether `read_result` is one of them, since a model was given only a part
                of some result.
        """
        ...


@frozen
class TurnSetup:
    """What all turns of one agent instance have in common.

    Args:
        config: What the instance is made from.
        model: Its model.
        render: Gives the system prompt.
        tools: Its tools.
        params: The card's request parameters, with those of the program and the configuration.
        hooks: Functions called on the way, or None.
        results: How much of a tool result the model is given; None is all.
        window: Tokens the model's context window holds, where the configuration says so.
        compaction: When and by whom the conversation is summarized.
        unpriced: Returns the spec of a model whose price is unknown, or None; of the agent's own
            models, or of those it is given.
        known_window: Returns the tokens the window holds, wherever that is known from, or None.
        permits: What loaded skills allow without a question; None if they allow nothing.
        model_named: Makes another model that a skill names; the caller closes it.
        fork: Has another instance of the agent carry out a skill.
    """

    _: KW_ONLY
    config: AgentConfig
    model: Model
    render: Callable[[], Awaitable[str]]
    tools: ToolSource
    params: RequestParams
    hooks: TurnHooks | None = None
    results: ResultLimits | None = None
    window: int | None = None
    compaction: CompactionPlan = DEFAULT_PLAN
    unpriced: Callable[[str | None], str | None] = lambda _: None
    known_window: Callable[[], int | None] = lambda: None
    permits: SkillPermits | None = None
    model_named: Callable[[str], Model] | None = None
    fork: Fork | None = None


@frozen
class Outcome:
    """What one run of a workflow returned.

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


COMPLETE: Final = frozenset({"endTurn", "stopSequence"})
"""Why turns end whose answer is whole."""


@frozen
class TurnResult:
    """What a turn returned.

    Args:
        turn_id: The turn.
        message: The answer.
        stop_reason: Why it ended.
        usage: What the agent itself used.
        tree_usage: The same with everything the turn started.
        messages: Every message of the turn, the user's first.
        structured: The value of a structured answer, or None.
        workflow: What a workflow did on the way, as its type describes it; None for an agent.
        external_messages: Messages of children that follow the turn in the agent's
            conversation.
        context: How full the context window was at the answer; None for a workflow.
    """

    turn_id: str
    message: Message
    stop_reason: str
    usage: Usage
    tree_usage: Usage
    messages: tuple[Message, ...]
    structured: object = None
    workflow: JsonObject | None = None
    external_messages: tuple[Message, ...] = ()
    context: ContextUse | None = None

    @property
    def text(self) -> str:
        """The answer's text."""
        return self.message.text

    @property
    def shortcoming(self) -> str | None:
        """What users are shown about an answer that is cut off or empty; None where it is whole."""
        if self.stop_reason not in COMPLETE:
            return f"the answer ended early: {self.stop_reason}"
        has_content = any(not isinstance(block, TextContent) for block in self.message.content)
        return None if has_content or self.text.strip() else "the answer is empty"

    def __str__(self) -> str:
        return self.text
