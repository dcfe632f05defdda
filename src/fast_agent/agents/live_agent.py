"""LiveAgent: what all types of agents have in common: one turn at a time, a memory, meters.

`LlmAgent` is the agent of type `agent`, which asks a model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from fast_agent.agents.agent import Agent
from fast_agent.agents.budget import Budget, Meter, UnapprovedTurn
from fast_agent.agents.events import fan_out
from fast_agent.agents.history.memory import Memory
from fast_agent.agents.turn import Turn
from fast_agent.agents.turn_context import TOP, SteeringQueue
from fast_agent.agents.turn_life import TurnLife
from fast_agent.errors import RunError
from fast_agent.messages.message import Message, ToolCall
from fast_agent.steps.steps import here
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from fast_agent.agents.events import Listener
    from fast_agent.agents.history.transcript import Compaction, Transcript
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.runtime_options import NewId
    from fast_agent.agents.turn_context import (
        Fork,
        SteeringMessage,
        TurnContext,
        TurnResult,
        TurnSetup,
    )
    from fast_agent.cards.agent_config import AgentConfig, UsageLimits
    from fast_agent.cards.grant import CardGrant
    from fast_agent.messages.history import History, ResultLimits
    from fast_agent.messages.message import Content, ToolResult
    from fast_agent.models.model import ToolSpec, Usage
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.sessions.journal import Journal
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import Human
    from fast_agent.tools.toolbox import ToolTable


class TurnCarrier(Protocol):
    """Has turns of agents run elsewhere, such as by the workers of a cluster."""

    async def carry(self, life: TurnLife, output: OutputShape | None) -> None:
        """Run a turn, add its messages to the draft, and finish it.

        Args:
            life: The turn.
            output: The shape the answer must have, or None.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        ...


class LiveAgent(Agent):
    """An agent that takes its turns one after another; a type writes `work`.

    Args:
        config: What it is made from.
        context: The context of its turns by default.
        templates: Messages its history starts with.
        remembers: Whether it remembers turns.
        limits: Bounds for it and everything it starts, or None.
        new_id: Returns turn ids.
        results: How much of a tool result its model is given; None is all.

    Attributes:
        carrier: Has its turns run elsewhere; None runs them here.
    """

    def __init__(
        self,
        config: AgentConfig,
        context: TurnContext,
        *,
        templates: Iterable[Message],
        remembers: bool,
        limits: UsageLimits | None,
        new_id: NewId,
        results: ResultLimits | None = None,
    ) -> None:
        self._config = config
        self._context = context
        self._new_id = new_id
        self._memory = Memory(templates, remembers=remembers, limits=results)
        self._meters = Meter(config.name), Meter(config.name, limits)
        self._turns = 0
        self._steering = SteeringQueue()
        self._closed = False
        self.carrier: TurnCarrier | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @abstractmethod
    def work(self, life: TurnLife, output: OutputShape | None) -> Awaitable[None]:
        """Do the work of a turn, and finish it; no other turn of this instance runs then.

        Args:
            life: The turn.
            output: The shape the answer must have, or None.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        ...

    def expect_turn(self, context: TurnContext) -> None:
        """Hook called when a turn is requested, before it waits for the turn lock."""

    @property
    def name(self) -> str:
        """The card's name."""
        return self._config.name

    @property
    def config(self) -> AgentConfig:
        """What it was made from."""
        return self._config

    @property
    def history(self) -> History:
        """What it remembers, up to the last turn that ended."""
        return self._memory.history

    @property
    def conversation(self) -> Transcript:
        """What it remembers; see `Agent.conversation`."""
        return self._memory.conversation

    @property
    def usage(self) -> Usage:
        """What it used itself since it was made."""
        return self._meters[0].usage

    @property
    def tree_usage(self) -> Usage:
        """Its own usage and that of everything it started."""
        return self._meters[1].usage

    async def generate(
        self,
        message: Message | str,
        *,
        context: TurnContext | None = None,
        output: OutputShape | None = None,
        listener: Listener | None = None,
        skill: SkillCall | None = None,
    ) -> TurnResult:
        """Run one turn; see `Agent.generate`."""
        message = _user_message(message)
        if context is not None:
            context = context.within(self._context)
        else:
            context = self._context
            if context.conversation is not None:
                context.conversation.require_loop()
        if listener:
            context = replace(context, listener=fan_out(context.listener, listener))
        if skill is not None:
            context = replace(context, skill=skill)
        if self._config.grant is not None:
            context = self._bounded(context, self._config.grant)
        memory = self._memory
        if memory.lock.is_around:
            msg = f"agent `{self.name}` cannot be called from within its own turn"
            raise RunError(msg, hint="the call would deadlock; use another agent or a clone")
        self.expect_turn(context)
        self._turns += 1
        try:
            steps = context.steps
            with steps.turn(self.name, message, context.parent_call_id):
                await steps.enter(self.name)
                async with memory.lock:
                    if self._closed:
                        raise RunError(
                            f"agent `{self.name}` is closed",
                            hint="its card or model changed, or the app ended: get the agent from"
                            " the app again",
                        )
                    life = TurnLife(
                        self._new_id(), message, memory, context, self._meters, self._steering
                    )
                    async with life:
                        if self.carrier is None:
                            await self.work(life, output)
                        else:
                            await self.carrier.carry(life, output)
                    return life.result
        finally:
            self._turns -= 1
            if self._steering.waits:
                self._steering.drop()

    def _bounded(self, context: TurnContext, grant: CardGrant) -> TurnContext:
        """Bound a turn of an unapproved found set, with all it starts."""
        if any(isinstance(one, UnapprovedTurn) for one in context.meters) or grant.is_approved:
            return context
        meter = UnapprovedTurn(self.name, grant.root)
        return replace(context, meters=(meter, *context.meters))

    async def tool_table(self) -> ToolTable:
        """Return its tools by name.

        Raises:
            RunError: It has none.
            FastAgentError: One of its servers cannot be reached.
        """
        what = f"agent `{self.name}` is of type `{self.config.type}`"
        raise RunError(f"{what}, which has no tools of its own")

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools it can call; see `Agent.list_tools`."""
        return (await self.tool_table()).specs

    async def call_tool(
        self, name: str, arguments: JsonObject | None = None, *, human: Human | None = None
    ) -> ToolResult:
        """Call one of its tools; see `Agent.call_tool`."""
        tools = await self.tool_table()
        tool = tools.get(name)
        if not isinstance(cast("object", arguments), Mapping | None):
            raise RunError(f"the arguments of a tool are a dictionary, not `{_kind(arguments)}`")
        if tool is None:
            hint = did_you_mean(closest(name, tools), f"the tools are {', '.join(tools) or 'none'}")
            raise RunError(f"agent `{self.name}` has no tool `{name}`", hint=hint)
        if tool.source == "agent":
            raise RunError(f"`{name}` is an agent", hint="call it with `app.call`")
        turn, shared = self._new_id(), self._context.conversation
        context = ToolContext(
            agent_name=self.name,
            turn_id=turn,
            call_id=f"{turn}-call",
            correlation_id=turn,
            human=human or self._context.human,
            conversation=None if shared is None else shared.conversation,
            deps=self._context.deps,
        )
        call, place = ToolCall(context.call_id, name, arguments or {}), here()
        if place.silent:
            return await tool.call(call, context)
        from fast_agent.agents.step_tools import call_in_step

        return await call_in_step(tool, call, place, context)

    def steer(self, message: Message | str) -> SteeringMessage:
        """Send a message into the turn that is running; see `Agent.steer`."""
        if self.idle:
            raise RunError(f"agent `{self.name}` is not running", hint="send it a message instead")
        return self._steering.add(_user_message(message))

    def clear(self, *, all: bool = False) -> None:  # noqa: A002 (the word of the command)
        """Forget; templates stay unless `all`."""
        self._memory.clear(everything=all)

    def load_history(self, messages: Iterable[Message]) -> None:
        """Replace what it remembers; see `Agent.load_history`."""
        loaded = list[object](messages)
        for one in loaded:
            if not isinstance(one, Message):
                raise RunError(
                    f"a history consists of `Message`s, not `{_kind(one)}`", hint=_MESSAGE_HINT
                )
        self._memory.load(cast("list[Message]", loaded))

    def add_external(self, messages: Sequence[Message]) -> None:
        """Add another agent's messages; see `Agent.add_external`."""
        self._memory.add_external(messages)

    async def barrier(self) -> None:
        """Wait until what it remembers is safe; see `Agent.barrier`."""
        await self._memory.barrier()

    def attach(self, journal: Journal) -> None:
        """Take up what a journal holds of it; see `Agent.attach`."""
        self._memory.attach(journal, self.name)

    @property
    def memory(self) -> Memory:
        """What it keeps from turn to turn."""
        return self._memory

    @property
    def idle(self) -> bool:
        """Whether no turn of it runs or waits to."""
        return self._turns == 0

    def take_over_from(self, other: Agent) -> None:
        """Take the place of another instance; see `Agent.take_over_from`."""
        memory = other.memory
        memory.remembers = self._memory.remembers
        self._memory = memory

    async def aclose(self) -> None:
        """Release what the instance holds; safe to call twice."""
        if not self._closed:
            self._closed = True
            await self.release()

    @abstractmethod
    async def release(self) -> None:
        """Release what the instance holds, once."""
        ...


_MESSAGE_HINT = "`Prompt.user(…)` makes a message from text, files and media"


def _user_message(message: object) -> Message:
    if isinstance(message, str):
        return Message.user(message)
    if not isinstance(message, Message):
        problem = f"a message is a string or a `Message`, not `{_kind(message)}`"
        raise RunError(problem, hint=_MESSAGE_HINT)
    if message.role != "user":
        raise RunError("a turn starts with a user message")
    if not isinstance(cast("object", message.content), tuple):
        problem = f"the content of a message is a tuple of blocks, not `{_kind(message.content)}`"
        raise RunError(problem, hint=_MESSAGE_HINT)
    return message


def _kind(value: object) -> str:
    return type(value).__name__


class LlmAgent(LiveAgent):
    """An agent that asks a model, of type `agent`.

    Args:
        setup: What all its turns share, its card among it.
        templates: Messages its history starts with.
        new_id: Returns turn ids.
        context: The context of its turns by default.
        read_resource: Reads a resource of one of its servers: (server, uri) to content blocks.
    """

    def __init__(
        self,
        setup: TurnSetup,
        *,
        templates: Iterable[Message] = (),
        new_id: NewId,
        context: TurnContext = TOP,
        read_resource: Callable[[str, str], Awaitable[tuple[Content, ...]]] | None = None,
    ) -> None:
        super().__init__(
            setup.config,
            context,
            templates=templates,
            remembers=setup.config.use_history is not False,
            limits=setup.params.usage_limits,
            new_id=new_id,
            results=setup.results,
        )
        self._setup = setup
        self._read_resource = read_resource

    @property
    def model_name(self) -> str:
        """The spec of its model."""
        return self._setup.model.name

    @property
    def setup(self) -> TurnSetup:
        """What all its turns share: model, tools, system prompt."""
        return self._setup

    def work(self, life: TurnLife, output: OutputShape | None) -> Awaitable[None]:
        """Ask the model until it answers; see `LiveAgent.work`."""
        skill, fork = life.context.skill, self._setup.fork
        if skill is not None and skill.fields.forks and fork is not None:
            return self._work_in_fork(life, output, skill, fork)
        return Turn(self._setup, life, output).run()

    async def _work_in_fork(
        self, life: TurnLife, output: OutputShape | None, skill: SkillCall, fork: Fork
    ) -> None:
        """Carry out a skill in a fresh instance; this one remembers the call and the answer."""
        context = life.context_below(depth=1, parent=life.origin.turn_id)
        result = await fork(skill, context, output)
        life.draft.append(life.message)
        life.draft.append(result.message)
        await life.finish(result.message, result.stop_reason, structured=result.structured)

    async def compact(self, wanted: str = "") -> Compaction:
        """Summarize the conversation with its model, which receives the summary from now on.

        The history keeps every message.

        Args:
            wanted: What the summary is to keep above all, in the user's words.

        Raises:
            RunError: There is no history to summarize.
            ModelError: The model gave no summary; the conversation is as it was.
            LimitError: A usage limit was reached.
            SessionError: What is remembered, or the summary, cannot be written.
        """
        from fast_agent.agents.history.compaction import asking, compact, compact_natively
        from fast_agent.models.model import ModelRequest, compacts

        memory = self._memory
        async with memory.lock:
            base, draft = memory.begin()
            try:
                before, end = draft.compaction, len(draft.history)
                if end <= (draft.templates if before is None else before.start):
                    raise RunError(f"agent `{self.name}` has no history to summarize")
                budget, setup = Budget(self._meters), self._setup
                compaction = None
                if setup.compaction.native and compacts(setup.model):
                    tools = await setup.tools.table(reads_results=draft.has_cut)
                    request = ModelRequest(
                        await setup.render(), (), tools.specs, setup.params, compaction=wanted
                    )
                    compaction = await compact_natively(draft, end, setup.model, budget, request)
                if compaction is None:
                    ask = asking(setup, budget, self._context)
                    window = None if draft.use is None else draft.use.window
                    compaction = await compact(draft, end, ask, wanted, window=window)
                draft.compact(compaction)
                memory.keep(base, draft)
            finally:
                memory.end()
            await memory.barrier()
        return compaction

    async def tool_table(self) -> ToolTable:
        """Return its tools by name."""
        return await self._setup.tools.table()

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of the card's servers; see `Agent.read_resource`."""
        if self._read_resource is None:
            msg = f"agent `{self.name}` has no servers to read `{uri}` from"
            raise RunError(msg, hint="list the server under `servers`")
        return await self._read_resource(server, uri)

    async def release(self) -> None:
        """Close its model."""
        await self._setup.model.aclose()
