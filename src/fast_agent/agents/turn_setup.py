"""Turn setup and result: what goes into the turns of an agent, and what comes out of one."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 (`dataclass` resolves it by its name)
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.config.bounds import COMPACTION_SHARE
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.request_params import RequestParams
    from fast_agent.messages.long_results import ResultLimits
    from fast_agent.messages.message import Message
    from fast_agent.models.model import Model
    from fast_agent.models.usage import ContextUse, Usage
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.hooks import TurnHooks
    from fast_agent.tools.skills.permits import SkillPermits
    from fast_agent.tools.toolbox import ToolTable


MAX_WITHOUT_TOOLS: Final = 3
"""Maximum number of model requests of a turn without tools.

One request is enough then. The others are for a model that calls a tool it was never given, and for
a structured answer that is put right.
"""


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
