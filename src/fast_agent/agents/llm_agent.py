"""LlmAgent: the agent of type `agent`, which asks a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.agents.budget import Budget
from fast_agent.agents.live_agent import LiveAgent
from fast_agent.agents.turn import Turn
from fast_agent.agents.turn_context import TOP
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from fast_agent.agents.history.transcript import Compaction
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.runtime_options import NewId
    from fast_agent.agents.turn_context import Fork, TurnContext, TurnSetup
    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.messages.content import Content
    from fast_agent.messages.message import Message
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.tools.toolbox import ToolTable


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
        """Have a fresh instance carry out a skill; this one remembers the call and the answer."""
        context = life.context_below(depth=1, parent=life.origin.turn_id)
        result = await fork(skill, context, output)
        life.draft.append(life.message)
        life.draft.append(result.message)
        await life.finish(result.message, result.stop_reason, structured=result.structured)

    async def compact(self, wanted: str = "") -> Compaction:
        """Let its model summarize the conversation; the model receives the summary from now on.

        The history keeps every message.

        Args:
            wanted: What the summary is to keep above all, in the person's words.

        Raises:
            RunError: There is nothing to summarize.
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
                    raise RunError(f"agent `{self.name}` remembers nothing to summarize")
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
