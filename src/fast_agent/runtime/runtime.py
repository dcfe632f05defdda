"""Runtime: the live agents of a load-set."""

from __future__ import annotations

from asyncio import get_running_loop
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from logging import getLogger
from types import MappingProxyType
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

from anyio import CancelScope, sleep

from fast_agent.agents.budget import Meter
from fast_agent.agents.conversation import Conversation
from fast_agent.agents.events import log_warnings
from fast_agent.agents.live_agent import LiveAgent
from fast_agent.agents.runtime_options import RuntimeOptions, through_steps
from fast_agent.agents.tool_calls import ChildCallBatch
from fast_agent.agents.turn_context import OpenCallMeters, TurnContext
from fast_agent.cards.agent_config import NO_OVERRIDES
from fast_agent.errors import FastAgentError, RunError
from fast_agent.prompt.instruction import UrlTexts, fetch_text
from fast_agent.runtime.blueprint import CardGeneration, LlmBlueprint, with_granted
from fast_agent.runtime.context import (
    AgentSampler,
    RuntimeContext,
    new_documents,
    new_loader,
    new_models,
    new_pool,
    server_specs,
    with_gate,
)
from fast_agent.steps.steps import NULL_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.events import Listener
    from fast_agent.agents.live_agent import TurnCarrier
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.agent_config import ChildHistory
    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.offers import ServerPrompts, ServerResources
    from fast_agent.mcp.pool import ServerReport
    from fast_agent.messages.message import Message
    from fast_agent.models.check import Selection
    from fast_agent.models.model import Model, Usage
    from fast_agent.resources.skill_client.entry import SkillCall, SkillEntry
    from fast_agent.resources.skill_client.source import NamedSkill
    from fast_agent.runtime.blueprint import Blueprint, Builder
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Steps
    from fast_agent.tools.human import Human

log = getLogger(__name__)

_POLL_SECONDS = 0.05
"""Interval of checking whether the last turns of replaced agents have ended."""


def _smart(card: Card, context: RuntimeContext) -> Blueprint:
    from fast_agent.runtime.smart.smart_agent import smart_blueprint

    return smart_blueprint(card, context)


BUILDERS: Mapping[str, Builder] = MappingProxyType({"agent": LlmBlueprint, "smart": _smart})
"""How cards are built, by type."""


class Runtime:
    """The live agents of a load-set, used as `async with Runtime(load_set, settings) as runtime:`.

    Agents are made when they are first asked for, and servers opened when a turn first needs them.

    Args:
        load_set: The cards; they were checked.
        settings: The configuration.
        options: The options of the program; None uses those of a plain program.
        builders: How cards are built, by type.
        turn: Where its turns stand when another agent started them; None at the top.
        allow_new_servers: Whether cards that come later may bring servers.
        carrier: Has the turns of conversations run elsewhere; None runs them here.
    """

    def __init__(
        self,
        load_set: LoadSet,
        settings: Settings,
        options: RuntimeOptions | None = None,
        *,
        builders: Mapping[str, Builder] = BUILDERS,
        turn: TurnContext | None = None,
        allow_new_servers: bool = False,
        carrier: TurnCarrier | None = None,
    ) -> None:
        options = through_steps(options or RuntimeOptions())
        outer = turn or TurnContext(
            listener=options.listener or log_warnings,
            journal=options.journal,
            transcript=options.transcript,
            redact=options.redact,
            steps=_steps_of(options.steps, options.journal),
            deps=options.deps,
        )
        self._options = options
        load_set = self._with_granted(load_set)
        self._carrier = carrier
        self._chosen: dict[str, str] = {}
        self._meter = Meter("session")
        self._charges = OpenCallMeters()
        configs = [card.config for card in load_set.cards.values()]
        sampler = AgentSampler(self._sampling_model, self._charges)
        self._pool = new_pool(
            settings, options, configs, sampler, allow_new_servers=allow_new_servers
        )
        outer = replace(
            outer, meters=(self._meter, *outer.meters), charges=self._charges, conversation=None
        )
        # Agents below another agent's turn are not those of the session, only recorded in it.
        self._outer = outer
        # The listener of another agent's turn traces it already.
        self._tracing = options.tracing if turn is None else None
        self._loop = get_running_loop()
        self._conversation = Conversation(
            self._make,
            outer,
            options.journal if turn is None else None,
            within=None if turn is None else turn.conversation,
            tracing=self._tracing,
            loop=self._loop,
        )
        self._conversations: WeakSet[Conversation] = WeakSet((self._conversation,))
        self._retired: list[list[Agent]] = []
        self._waits = False
        self._stack = AsyncExitStack()
        context = RuntimeContext(
            options=with_gate(options, self._pool, configs, self._stack),
            settings=settings,
            cards=load_set.cards,
            models=new_models(settings, options),
            pool=self._pool,
            urls=UrlTexts(fetch_text, options.monotonic),
            loader=new_loader(options),
            documents=new_documents(settings, options),
            turn=self._conversation.context,
            wanted_model=self.wanted_model,
            clone=self.clone,
            inner=partial(Runtime, builders=builders),
        )
        self._edition = CardGeneration(load_set, context, builders, {})
        self._editions: WeakSet[CardGeneration] = WeakSet((self._edition,))
        self._stack.callback(context.documents.close)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._pool)
        if self._options.steps is NULL_STEPS:
            self._pool.load_on_start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        problem: FastAgentError | None = None
        try:
            with CancelScope(shield=True):
                problem = await self._close_agents()
        finally:
            self._edition.context.loader.close()
            await self._stack.__aexit__(exc_type, exc, traceback)
        if problem is not None and exc is None:
            raise problem

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all cards, in load order."""
        return tuple(self._edition.load_set.cards)

    @property
    def default(self) -> Agent:
        """The agent a user talks to first.

        Raises:
            RunError: There is none.
            FastAgentError: Its card cannot be run.
        """
        return self.agent(self.default_name)

    @property
    def default_name(self) -> str:
        """The name of the agent a user talks to first.

        Raises:
            RunError: There is none.
        """
        name = self._edition.load_set.default
        if name is None:
            raise RunError("there is no agent to talk to", hint="load a card without `tool_only`")
        return name

    @property
    def conversation(self) -> Conversation:
        """The agents of its own conversation."""
        return self._conversation

    @property
    def transcript(self) -> CumulativeTranscript:
        """Everything said in the session, turn by turn."""
        return self._conversation.transcript

    @property
    def usage(self) -> Usage:
        """What all agents used together."""
        return self._meter.usage

    def agent(self, name: str) -> Agent:
        """Return the shared instance of a card.

        Args:
            name: The card's name.

        Raises:
            RunError: There is no such card, or there is no builder for its type.
            SessionError: What it remembered in the session cannot be read.
            FastAgentError: The card cannot be run.
        """
        return self._conversation.agent(name)

    def new_conversation(
        self,
        *,
        listener: Listener | None = None,
        journal: Journal | None = None,
        human: Human | None = None,
        deps: tuple[object, ...] = (),
        steps: Steps | None = None,
    ) -> Conversation:
        """Start another conversation with the same agents, none of which remembers this one.

        Args:
            listener: Hears of the events of its turns; None is the runtime's own listener.
            journal: Records it, and returns what was recorded before; None records nothing.
            human: Asks the user; None is the runtime's own.
            deps: Values for function tools, which go before those of the runtime.
            steps: Who carries its turns, in any event loop; None is who carries the runtime's.

        Returns:
            Its agents; the caller closes them.
        """
        outer, loop = self._outer, None
        if steps is None:
            steps, loop = _steps_of(self._options.steps, journal), self._loop
        turn = replace(
            outer,
            listener=listener or outer.listener,
            journal=journal,
            transcript=None,
            human=human,
            steps=steps,
            deps=(*deps, *outer.deps),
        )
        conversation = Conversation(self._make, turn, journal, tracing=self._tracing, loop=loop)
        self._conversations.add(conversation)
        return conversation

    async def refresh(
        self, load_set: LoadSet, changed: Collection[str], settings: Settings | None = None
    ) -> None:
        """Take another set of cards; agents in every conversation change to it, all or none.

        A turn under way ends as it began. What agents remember stays, and so do the connections to
        servers; one that no card brings any more is ended once nothing uses it.

        Args:
            load_set: The cards; they were checked.
            changed: The agents whose cards, or files behind them, have changed, with all
                that depend on them.
            settings: Another configuration, by which all agents are made again; None keeps the
                one there is.

        Raises:
            FastAgentError: A card cannot be run; everything is as it was.
        """
        load_set = self._with_granted(load_set)
        before, known, conversations = self._edition, load_set.cards, tuple(self._conversations)
        gone = [name for name in before.load_set.cards if name not in known]
        if settings is not None:
            changed = {*changed, *before.load_set.cards, *known}
        context = before.context.reloaded(settings)
        undo = self._pool.change((*changed, *gone))
        if settings is not None:
            self._pool.renew(server_specs(settings, self._options))
        try:
            self._edition = before.after(load_set, changed, context)
            wanted = {name for name in changed if name in known}
            fresh = [conversation.prepare(wanted) for conversation in conversations]
        except BaseException:
            self._edition = before
            undo()
            raise
        if settings is not None:  # a turn under way may use the previous documents
            self._stack.callback(context.documents.close)
        self._editions.add(self._edition)
        for conversation, agents in zip(conversations, fresh, strict=True):
            former = conversation.take(agents, gone)
            if former:
                self._retired.append(former)
        self._pool.forget_unused()
        await self._close_former()
        if self._retired and not self._waits:
            self._waits = True
            self._pool.start_soon(self._wait_for_former)

    def _with_granted(self, load_set: LoadSet) -> LoadSet:
        options = self._options
        if not options.extra_servers:
            return load_set
        barred = () if options.barred is None else options.barred()
        return with_granted(load_set, options.extra_servers, barred)

    async def _close_former(self) -> None:
        """Close instances that were replaced together, as soon as no turn of theirs runs.

        One of them may yet be asked by another whose turn began before.
        """
        idle = [group for group in self._retired if all(agent.idle for agent in group)]
        self._retired = [group for group in self._retired if group not in idle]
        if not self._retired:
            for edition in self._editions:
                edition.upgrade_to(self._edition)
            self._pool.close_retired()
        for group in idle:
            for agent in group:
                try:
                    await agent.aclose()
                except FastAgentError as error:
                    log.warning("%s", error.message)

    async def _wait_for_former(self) -> None:
        while self._retired:
            await sleep(_POLL_SECONDS)
            await self._close_former()
        self._waits = False

    def _make(self, name: str, turn: TurnContext) -> Agent:
        agent = self._edition.blueprint(name).instance(shared=True, turn=turn)
        if self._carrier is not None and isinstance(agent, LiveAgent):
            agent.carrier = self._carrier
        return agent

    def restore(self) -> None:
        """Restore what the journal contains to every shared instance, as after a rewind.

        Raises:
            SessionError: It cannot be read.
        """
        self._conversation.restore()

    def clone(self, name: str, messages: Iterable[Message] | None = None) -> Agent:
        """Make an instance of a card for one caller, who closes it; servers are shared.

        Args:
            name: The card's name.
            messages: What its history starts with; None is the card's own `messages`.

        Raises:
            RunError: There is no such card, or there is no builder for its type.
            FastAgentError: The card cannot be run.
        """
        return self._edition.blueprint(name).instance(messages)

    async def call(
        self,
        parent: str,
        child: str,
        message: Message | str,
        *,
        wanted: ChildHistory = NO_OVERRIDES,
        warn: Callable[[str], None] = log.warning,
        conversation: Conversation | None = None,
    ) -> TurnResult:
        """Call a fresh instance of an agent as if another one had called it as a tool.

        Args:
            parent: The card of the other, whose shared instance takes part with its history.
            child: The card of the one that answers.
            message: What it is asked.
            wanted: What it starts with and where its messages go, over what the cards say.
            warn: Called with a line for each problem that did not stop the call.
            conversation: The conversation the call belongs to; None is the runtime's own.

        Raises:
            RunError: There is no such card.
            FastAgentError: A card cannot be run, or the turn could not be finished.
        """
        from fast_agent.agents.delegation.child_history import call_child

        self._edition.card(child)
        conversation = self._conversation if conversation is None else conversation
        caller, config = conversation.agent(parent), self._edition.card(parent).config
        route = self._edition.context.histories.route(config, child, wanted)
        child_calls = ChildCallBatch(caller.conversation, warn, conversation=conversation)
        turn, clone = conversation.context, partial(self.clone, child)
        try:
            return await call_child(clone, route, child_calls, message, index=0, context=turn)
        finally:
            await child_calls.deliver()
            if child_calls.external_messages:
                caller.add_external(child_calls.external_messages)

    def model_of(self, name: str) -> Selection:
        """Return which model a card's agent asks, and who chose it.

        Raises:
            RunError: There is no such card.
        """
        return self._edition.context.model_of(self._edition.card(name).config)

    def provider_of(self, name: str) -> str | None:
        """Return the provider of the model that an agent asks; None for an offline model.

        A card or a model that is wrong has none either: its turn says what is wrong.
        """
        with suppress(FastAgentError):
            return self._edition.context.provider_of(self.model_of(name).text)
        return None

    def import_models(self) -> None:
        """Import in a thread what the first requests of its agents need."""
        found = {self.provider_of(name) for name in self.names}
        providers = [one for one in found if one is not None]
        if providers:
            from fast_agent.models.providers.provider import warm_soon

            warm_soon(providers)

    def wanted_model(self, name: str) -> str | None:
        """Return the model a user chose for an agent over its card, or None."""
        return self._chosen.get(name, self._options.model)

    async def choose_model(self, name: str, spec: str | None) -> None:
        """Switch an agent to another model from its next turn on, also after a reload.

        Args:
            name: The card's name.
            spec: The model, which was checked; None goes back to what it had.

        Raises:
            FastAgentError: The card cannot be run with it; everything is as it was.
        """
        before = self._chosen
        self._chosen = {key: value for key, value in before.items() if key != name}
        if spec is not None:
            self._chosen[name] = spec
        try:
            load_set = self._edition.load_set
            await self.refresh(load_set, {name, *load_set.dependents((name,))})
        except BaseException:
            self._chosen = before
            raise

    async def skills(self, name: str) -> Sequence[NamedSkill]:
        """List the skills of a card's agent; none for a workflow.

        Raises:
            FastAgentError: The card cannot be run, or a server of it cannot be used.
        """
        blueprint = self._edition.blueprint(name)
        return await blueprint.skills.listed() if isinstance(blueprint, LlmBlueprint) else ()

    def callable_skills(self, name: str) -> Sequence[SkillEntry]:
        """List the skills that a user may call while a card's agent is talked to."""
        blueprint = self._edition.blueprint(name)
        return blueprint.skills.callable() if isinstance(blueprint, LlmBlueprint) else ()

    async def call_skill(self, agent: str, name: str, arguments: str) -> SkillCall | None:
        """Return the message of a user who calls a skill; None where the agent has none.

        Raises:
            FastAgentError: The skill cannot be read.
        """
        blueprint = self._edition.blueprint(agent)
        if not isinstance(blueprint, LlmBlueprint):
            return None
        return await blueprint.skills.called(name, arguments)

    def servers_named(self, name: str) -> Sequence[str]:
        """Return the MCP servers a card names; those it brings itself are not among them.

        Raises:
            RunError: There is no such card.
        """
        return self._edition.card(name).config.servers

    async def start_servers(self, name: str) -> None:
        """Open the servers a card names, before its turn needs them; the turn says what is wrong.

        Its functions are not loaded yet, which may take long.
        """
        if not self._options.steps.replays:
            with suppress(FastAgentError):
                await self._pool.open(self.servers_named(name))

    async def open_servers(self, names: Iterable[str]) -> tuple[ServerReport, ...]:
        """Open the servers of some agents at once, before their first turn.

        Args:
            names: Names of cards.

        Returns:
            How each server stands; one that is down stops no other.

        Raises:
            FastAgentError: A card cannot be run.
        """
        servers: dict[str, None] = {}
        for name in names:
            servers.update(dict.fromkeys(self._edition.blueprint(name).servers))
        if self._options.steps.replays:
            return self._pool.reports()
        return await self._pool.open(tuple(servers))

    def server_resources(self, name: str) -> tuple[ServerResources, ...]:
        """Return the resources of a card's servers as its agent may use them.

        Args:
            name: The card's name.

        Raises:
            FastAgentError: The card cannot be run.
        """
        from fast_agent.tools.toolbox import ServerFilter

        pool, allowed = self._pool, ServerFilter.of(self._edition.card(name).config)
        servers = self._edition.blueprint(name).servers
        return tuple([pool.resources(server, allowed) for server in servers])

    def server_prompts(self, name: str) -> tuple[ServerPrompts, ...]:
        """Return the prompts of a card's servers as its agent may use them.

        Args:
            name: The card's name.

        Raises:
            FastAgentError: The card cannot be run.
        """
        from fast_agent.tools.toolbox import ServerFilter

        pool, allowed = self._pool, ServerFilter.of(self._edition.card(name).config)
        return tuple([pool.prompts(one, allowed) for one in self._edition.blueprint(name).servers])

    async def connect_server(self, name: str) -> None:
        """Connect to a server now, also where the last attempt failed.

        Args:
            name: The server.

        Raises:
            ToolError: There is no such server, or it cannot be connected to.
        """
        await self._connection(name).connect()

    async def disconnect_server(self, name: str) -> bool:
        """End the connection to a server; the next need connects again.

        Args:
            name: The server.

        Returns:
            Whether there was a connection.

        Raises:
            ToolError: There is no such server.
        """
        return await self._connection(name).disconnect()

    def _connection(self, name: str) -> Connection:
        return self._pool.connection(name)

    def server_log(self, name: str) -> tuple[str, ...]:
        """Return the last lines of a server's standard error.

        Args:
            name: The server.

        Raises:
            ToolError: There is no such server.
        """
        return self._connection(name).log_end

    def server_reports(self) -> tuple[ServerReport, ...]:
        """Return the state of every server."""
        return self._pool.reports()

    def finish_scripts(self) -> None:
        """Check that the scripts of scripted models were used up.

        Raises:
            ModelError: Steps were left over.
        """
        self._edition.context.models.finish()

    def _sampling_model(self, agent: str, spec: str | None) -> Model:
        """Make the model that answers a server; `spec` is what the configuration sets for it."""
        if spec is not None:
            workspace = self._options.workspace
            return self._edition.context.models.create(spec, agent=agent, directory=workspace)
        return self.model_for(agent)

    def model_for(self, agent: str) -> Model:
        """Make another model of a card's agent; the caller closes it.

        Raises:
            RunError: There is no such card.
            ModelError: The model cannot be used.
        """
        config, own = self._edition.card(agent).config, self.model_of(agent)
        return self._edition.context.models.create(
            own.text, agent=agent, api_key=config.api_key, directory=own.directory
        )

    async def _close_agents(self) -> FastAgentError | None:
        """Close every agent; returns the first problem."""
        first: FastAgentError | None = None
        for conversation in tuple(self._conversations):
            first = await conversation.aclose() or first
        for group in self._retired:
            for agent in group:
                await agent.aclose()
        return first


def _steps_of(steps: Steps, journal: Journal | None) -> Steps:
    """Return what carries the turns of a conversation: a recording goes before its journal."""
    if steps is not NULL_STEPS or journal is None:
        return steps
    return journal.steps or NULL_STEPS
