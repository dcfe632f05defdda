"""Blueprint: a card made ready once, so that instances of it cost little.

A `CardGeneration` is a set of cards with its blueprints; a turn ends with the one it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from anyio import CancelScope

from fast_agent.agents.agent_skills import AgentSkills, directories_of, skill_home
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.offered_tools import AgentServers, OfferedTools
from fast_agent.agents.turn_context import DEFAULT_PLAN, CompactionPlan, TurnSetup
from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.load_set import LoadSet
from fast_agent.cards.placeholder import parse_template
from fast_agent.config.settings import COMPACTION_SHARE, TOOL_RESULT_BYTES
from fast_agent.errors import CardError, FastAgentError, RunError
from fast_agent.messages.history import ResultLimits
from fast_agent.prompt.instruction import (
    AgentListing,
    Instruction,
    InstructionContext,
    host_platform,
    internal_index,
    internal_text,
    python_version,
)
from fast_agent.text.wording import closest, first_of

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.delegation.agent_tool import AgentTool
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.agents.turn_context import TurnContext, TurnResult
    from fast_agent.cards.agent_config import AgentConfig, FileAccess
    from fast_agent.cards.card import Card
    from fast_agent.cards.placeholder import Template
    from fast_agent.config.settings import Settings
    from fast_agent.messages.message import Content, Message
    from fast_agent.models.model import Model
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.runtime.context import RuntimeContext
    from fast_agent.tools.allowed_calls import SkillPermits
    from fast_agent.tools.functions.card_functions import CardFunctions
    from fast_agent.tools.functions.loader import FunctionLoader
    from fast_agent.tools.permission import PermissionRules
    from fast_agent.tools.skills.tools import OfferedSkills
    from fast_agent.tools.tool import Tool


class Blueprint(Protocol):
    """What instances of one card are made from."""

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the MCP servers its turns need."""
        ...

    def instance(
        self,
        messages: Iterable[Message] | None = None,
        *,
        shared: bool = False,
        turn: TurnContext | None = None,
    ) -> Agent:
        """Make an instance.

        Args:
            messages: What its history starts with; None is the card's own `messages`.
            shared: It is the shared instance of the card. Such a workflow works with
                the shared instances of its members, any other with clones of them.
            turn: Where its turns stand unless a caller says otherwise; None is the runtime's own
                conversation.

        Raises:
            FastAgentError: The card cannot be run.
        """
        ...


Builder: TypeAlias = Callable[["Card", "RuntimeContext"], Blueprint]
"""Makes the blueprint of a card of one type."""


class LlmBlueprint:
    """The blueprint of a card of type `agent`, or of one that asks a model like it.

    Args:
        card: The card.
        context: What it is made with.
        tools: Further tools.
        instruction: The instruction, where it is not the card's own.
        calls_agents: Whether the card's `agents` are its tools; else they are only listed.

    Attributes:
        skills: The card's skills.

    Raises:
        CardError: A function or hook it names cannot be used.
        HistoryError: A file of its `messages` cannot be read.
        ToolError: A server it names is not known.
        RunError: It asks for what this version does not do.
    """

    def __init__(
        self,
        card: Card,
        context: RuntimeContext,
        *,
        tools: Iterable[Tool] = (),
        instruction: str | None = None,
        calls_agents: bool = True,
    ) -> None:
        config, options = card.config, context.options
        self._config = config
        self._context = context
        self._is_reported = card.path in options.reported
        own = config.request_params or NO_PARAMS
        self._params = options.params.over(own).over(context.settings.request_params)
        self._results = result_limits(self._params)
        self._model = context.model_of(config)
        self._window = self._check_facts()
        self._compaction = compaction_plan(config, context)
        functions = functions_of(card, context.loader)
        brought = own_tools(config, context.settings, options)
        self._fixed: tuple[Tool, ...] = (
            *(functions.tools if functions else ()),
            *(options.tool_transform(config, brought) if options.tool_transform else brought),
            *(context.documents().tools if config.resource_tools else ()),
            *tools,
        )
        self._tool_hooks = functions.tool_hooks if functions else ()
        self._turn_hooks = functions.turn_hooks if functions else None
        self._templates = templates_of(config, options.workspace)
        directory = config.directory or options.workspace
        self._servers = AgentServers(
            config, context.pool, directory, options.gate, self._import_model
        )
        template = parse_template(config.instruction or "" if instruction is None else instruction)
        skills = AgentSkills(
            config,
            context.settings.skills,
            options,
            self._servers,
            template,
            fork=self._fork,
        )
        self._fixed = skills.gated(self._fixed)
        self.skills = skills
        self._skills: OfferedSkills = skills
        if self._servers.names:
            from fast_agent.agents.step_tools import StepSkills

            self._skills = StepSkills(config.name, skills)
        self._instruction = self._read_instruction(template)
        self._children: tuple[AgentTool, ...] | None = None
        self._tools = None if config.agents and calls_agents else self._offer(())

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the MCP servers its turns need."""
        return self._servers.names

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of its servers; see `Agent.read_resource`."""
        return await self._servers.read_resource(server, uri)

    def instance(
        self,
        messages: Iterable[Message] | None = None,
        *,
        shared: bool = False,
        turn: TurnContext | None = None,
    ) -> LlmAgent:
        """Make an instance."""
        del shared
        config, context = self._config, self._context
        setup = TurnSetup(
            config=config,
            model=context.models.create(
                self._model.text,
                agent=config.name,
                api_key=config.api_key,
                directory=self._model.directory,
            ),
            render=self._instruction.render,
            tools=self._tools or self._offer(self._crew()),
            params=self._params,
            hooks=self._turn_hooks,
            results=self._results,
            window=self._window,
            compaction=self._compaction,
            unpriced=self._unpriced,
            permits=self.skills.permits,
            model_named=self._other_model,
            fork=self._fork,
            known_window=self._known_window,
        )
        return LlmAgent(
            setup,
            templates=self._templates if messages is None else messages,
            new_id=context.options.new_turn_id,
            context=context.turn if turn is None else turn,
            read_resource=self._servers.read_resource,
        )

    async def _fork(
        self, skill: SkillCall, context: TurnContext, output: OutputShape | None = None
    ) -> TurnResult:
        """Carry out a skill in another instance; see `Fork`."""
        own = replace(skill, fields=replace(skill.fields, forks=False))
        agent = self.instance(())
        try:
            context = replace(context, skill=own)
            return await agent.generate(skill.text, context=context, output=output)
        finally:
            with CancelScope(shield=True):
                await agent.aclose()

    def _other_model(self, text: str) -> Model:
        """Make a model that a skill names.

        Raises:
            ModelError: There is none of that name, or it cannot be asked.
        """
        config, context = self._config, self._context
        directory = None if config.remote is not None else context.options.workspace
        return context.models.create(text, agent=config.name, directory=directory)

    def _check_facts(self) -> int | None:
        """Return what the configuration says of the model's window.

        Raises:
            RunError: Money is bounded, and the price of the model is unknown.
        """
        settings, limits = self._context.settings, self._params.usage_limits
        bounds_money = limits is not None and limits.max_cost is not None
        if not bounds_money and not settings.model_facts:
            return None
        unpriced = self._unpriced(None) if bounds_money else None
        if unpriced is not None:
            raise RunError(
                f"agent `{self._config.name}` has a `max_cost`, and the price of"
                f" `{unpriced}` is not known",
                hint=f"state it: `model_facts: {{{unpriced}: {{input_cost: …, output_cost:"
                " …}}`, in US dollars for a million tokens",
            )
        from fast_agent.models.facts import stated_facts
        from fast_agent.models.spec import parse_models

        specs = parse_models(self._model.text, settings.model_aliases, settings.endpoints)
        # Of several models, each answer brings the window of the one that gave it.
        return stated_facts(specs[0], settings).context_window if len(specs) == 1 else None

    def _known_window(self) -> int | None:
        """Return how many tokens the model has room for, or None; the first time looks it up.

        None as well where a user saw at the start what fills it.
        """
        if self._is_reported:
            return None
        from fast_agent.models.facts import known_window

        environ = self._context.options.environ
        return known_window(self._model.text, self._context.settings, environ)

    def _unpriced(self, model: str | None) -> str | None:
        """Return the spec of a model of a provider whose price is unknown, or None.

        Args:
            model: The model; None is the agent's own.
        """
        from fast_agent.models.check import endpoint_of
        from fast_agent.models.facts import facts_of, stated_facts
        from fast_agent.models.spec import parse_models

        settings, environ = self._context.settings, self._context.options.environ
        text = self._model.text if model is None else model
        for spec in parse_models(text, settings.model_aliases, settings.endpoints):
            stated = stated_facts(spec, settings)
            if not spec.is_cloud or stated.is_priced:
                continue
            if not facts_of(endpoint_of(spec, settings, environ), stated).is_priced:
                return spec.text
        return None

    def _import_model(self) -> None:
        """Import in a thread what the first request imports, unless it is of no provider."""
        with suppress(FastAgentError):  # the first request says what is wrong
            provider = self._context.provider_of(self._model.text)
            if provider is not None:
                from fast_agent.models.providers.provider import warm_soon

                warm_soon([provider])

    def _offer(self, children: Iterable[Tool]) -> OfferedTools:
        tools = (*self._fixed, *children)
        return OfferedTools(
            self._config.name,
            tools,
            self._servers,
            self._tool_hooks,
            self._skills,
            asking_of(self._config, self._context.options, self.skills.permits),
        )

    def _crew(self) -> Iterator[Tool]:
        """Yield the tools of an instance's children, with their own limits."""
        if self._children is None:
            self._children = tuple(self._child_tools())
        from fast_agent.agents.delegation.agent_tool import ChildCallLimits

        crew = ChildCallLimits(self._config, self._context.options.max_depth)
        return (replace(tool, crew=crew) for tool in self._children)

    def _child_tools(self) -> Iterator[AgentTool]:
        config, context = self._config, self._context
        from fast_agent.agents.delegation.agent_tool import ChildCallLimits, agent_tool

        crew = ChildCallLimits(config, context.options.max_depth)
        for name in dict.fromkeys(config.agents):
            child, route = context.cards[name].config, context.histories.route(config, name)
            yield agent_tool(child, partial(context.clone, name), crew, route)

    def _read_instruction(self, template: Template) -> Instruction:
        config, options = self._config, self._context.options
        listed = tuple([self._listing(name) for name in dict.fromkeys(config.agents)])
        given = InstructionContext(
            workspace=options.workspace,
            now=options.now,
            platform=options.platform or host_platform(),
            python=options.python or python_version(),
            servers=self._servers.instructions,
            agents=lambda: listed,
            skills=self._skills.block,
            resources=internal_index,
            internal=internal_text,
            urls=self._context.urls,
            reads_project=partial(options.reads_project, config),
        )
        return Instruction(template, config, given)

    def _listing(self, name: str) -> AgentListing:
        from fast_agent.agents.delegation.agent_tool import describe

        child = self._context.cards[name].config
        return AgentListing(name, describe(child), child.servers)


def compaction_plan(config: AgentConfig, context: RuntimeContext) -> CompactionPlan:
    """Return when and by which agent a conversation is summarized.

    Raises:
        RunError: The configuration names an agent that is not there.
    """
    asked = context.settings.compaction if config.compaction is None else config.compaction
    if asked is False:
        return CompactionPlan(None)
    if asked is None or asked is True:
        return DEFAULT_PLAN
    share = COMPACTION_SHARE if asked.share is None else asked.share
    name = asked.agent
    if name is None or name == config.name:
        return CompactionPlan(share, native=asked.native)
    if name not in context.cards:
        raise RunError(
            f"`compaction` names the agent `{name}`, which does not exist",
            hint="load its card too, or leave out `agent`",
        )

    async def ask(system: str, text: str, turn: TurnContext) -> str:
        agent = context.clone(name, ())
        try:
            result = await agent.generate(f"{system}\n\n{text}", context=turn)
        finally:
            await agent.aclose()
        return result.text

    return CompactionPlan(share, ask, native=False)


def result_limits(params: RequestParams) -> ResultLimits:
    """Return how much of a tool result the model of an agent with these parameters is given."""
    given = params.tool_result_bytes
    if given is None or isinstance(given, int):
        return ResultLimits(given or TOOL_RESULT_BYTES)
    return ResultLimits(TOOL_RESULT_BYTES, given)


def functions_of(card: Card, loader: Callable[[], FunctionLoader]) -> CardFunctions | None:
    """Load the functions of a card; None where it names none.

    Raises:
        CardError: One of them cannot be used; holds every problem.
    """
    config = card.config
    if not config.function_tools and not config.tool_hooks:
        return None
    from fast_agent.tools.functions.card_functions import load_functions

    functions = load_functions(card, loader())
    errors = [one for one in functions.diagnostics if one.severity == "error"]
    if errors:
        raise CardError(
            f"agent `{config.name}`: {errors[0].message}", diagnostics=functions.diagnostics
        )
    return functions


def asking_of(
    config: AgentConfig, options: RuntimeOptions, permits: SkillPermits | None = None
) -> PermissionRules | None:
    """Return which calls of an agent need permission; None if none does.

    Args:
        config: The card.
        options: The options of the program.
        permits: What loaded skills allow without a question.
    """
    permission, confirm = options.permission, config.confirm
    if config.type == "smart" and not options.trust_cards:
        confirm = (*confirm, "create_agent_card")  # it writes what later runs load automatically
    if not confirm and permission is None:
        return None
    from fast_agent.tools.permission import HumanPermission, PermissionRules

    if permission is None:
        return PermissionRules(HumanPermission(options.human, options.allowed), confirm)
    return PermissionRules(permission, config.confirm, always=True, permits=permits)


def own_tools(config: AgentConfig, settings: Settings, options: RuntimeOptions) -> Iterator[Tool]:
    """Yield the runtime's own tools of an agent: the user to ask, and the shell."""
    if config.human_input:
        from fast_agent.tools.human_input import HumanInputTool

        yield HumanInputTool(options.human)
    access = _file_access(config, options)
    if access is not None:
        yield from _file_tools(access, config, settings, options)
    if config.fetch or options.fetch:
        yield _fetch_tool(options)
    if config.shell or options.shell:
        from fast_agent.tools.shell.shell import DEFAULT_LIMITS, shell_tool

        limits, asked = DEFAULT_LIMITS, settings.shell
        if asked.timeout_seconds is not None:
            limits = replace(limits, timeout_seconds=asked.timeout_seconds)
        if asked.max_output_bytes is not None:
            half = asked.max_output_bytes // 2
            limits = replace(limits, head_bytes=asked.max_output_bytes - half, tail_bytes=half)
        given = asked.variables
        yield shell_tool(config, options.workspace, options.environ, given=given, limits=limits)


def _file_access(config: AgentConfig, options: RuntimeOptions) -> FileAccess | None:
    asked = {config.files, options.files}
    return "write" if "write" in asked else "read" if "read" in asked else None


def _file_tools(
    access: FileAccess, config: AgentConfig, settings: Settings, options: RuntimeOptions
) -> Iterator[Tool]:
    from fast_agent.tools.files.file_tools import FileGuard, file_tools
    from fast_agent.tools.files.workspace import Workspace
    from fast_agent.tools.permission import HumanPermission

    permission = options.permission or HumanPermission(options.human)
    asks_writes = options.permission is None  # else that one is asked about every write
    guard = FileGuard(permission, asks_writes, options.protected)
    # Skills name neighbouring files, wherever they are.
    home = skill_home(options.environ)
    skills, _ = directories_of(config, settings.skills, options.workspace, home)
    yield from file_tools(Workspace(options.workspace, skills), access, guard)


def _fetch_tool(options: RuntimeOptions) -> Tool:
    from fast_agent.runtime.fetch_tool import FetchTool
    from fast_agent.tools.permission import HumanPermission

    # With a permission in place every page is asked about: the address was allowed then.
    asked = options.permission is not None
    return FetchTool(None if asked else HumanPermission(options.human, options.allowed))


def templates_of(config: AgentConfig, workspace: Path) -> tuple[Message, ...]:
    """Read the messages a card seeds histories with.

    Args:
        config: The card. One from a web address has none.
        workspace: Where relative paths of an agent made in Python start.

    Raises:
        HistoryError: A file cannot be read, or something in it is wrong.
    """
    if not config.messages or config.remote is not None:
        return ()
    directory = config.directory or workspace
    from fast_agent.agents.delegation.child_history import reads_of
    from fast_agent.messages.file import read_history

    return tuple(
        [
            replace(message, is_template=True)
            for name in config.messages
            for message in read_history(directory / name, check=reads_of(config)).messages
        ]
    )


class GenerationCards(Mapping[str, "Card"]):
    """The cards of an edition, also after it went over to a later one.

    Blueprints live as long as their agents do not change; with the cards themselves, each would
    hold all those of the time it was made.

    Args:
        edition: The edition.
    """

    __slots__ = ("_edition",)

    def __init__(self, edition: CardGeneration) -> None:
        self._edition = edition

    def __getitem__(self, name: str) -> Card:
        return self._edition.load_set.cards[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._edition.load_set.cards)

    def __len__(self) -> int:
        return len(self._edition.load_set.cards)


class CardGeneration:
    """The cards at one time, and their blueprints.

    Blueprints keep the edition they were made in, so that an agent whose turn is under way finds
    the children its card spoke of. Those of agents that did not change pass on to later editions.

    Args:
        load_set: The cards; they were checked.
        context: What blueprints are made with; its cards and its `clone` become the edition's.
        builders: How cards are built, by type.
        blueprints: Those made before that hold for these cards too.
    """

    __slots__ = ("__weakref__", "_blueprints", "_builders", "context", "load_set")

    def __init__(
        self,
        load_set: LoadSet,
        context: RuntimeContext,
        builders: Mapping[str, Builder],
        blueprints: Mapping[str, Blueprint],
    ) -> None:
        self.load_set = load_set
        self._builders = builders
        self._blueprints = dict(blueprints)
        cards = GenerationCards(self)
        self.context = replace(context, cards=cards, clone=self.clone)

    def card(self, name: str) -> Card:
        """Return a card.

        Raises:
            RunError: There is none of that name.
        """
        card = self.load_set.cards.get(name)
        if card is None:
            near = closest(name, self.load_set.cards)
            hint = f"did you mean `{near}`?" if near else _loaded_names(self.load_set)
            raise RunError(f"no agent is named `{name}`", hint=hint)
        return card

    def blueprint(self, name: str) -> Blueprint:
        """Return the blueprint of a card, made now if it was not needed before.

        Raises:
            RunError: There is no such card, or there is no builder for its type.
            FastAgentError: The card cannot be run.
        """
        blueprint = self._blueprints.get(name)
        if blueprint is None:
            card = self.card(name)
            builder = self._builders.get(card.config.type)
            if builder is None:
                known = ", ".join(f"`{kind}`" for kind in self._builders)
                raise RunError(
                    f"agent `{name}` is of type `{card.config.type}`;"
                    f" only cards of type {known} can be built here"
                )
            blueprint = self._blueprints[name] = builder(card, self.context)
        return blueprint

    def clone(self, name: str, messages: Iterable[Message] | None = None) -> Agent:
        """Make an instance of a card for one caller; see `Runtime.clone`."""
        return self.blueprint(name).instance(messages)

    def after(
        self, load_set: LoadSet, changed: Collection[str], context: RuntimeContext
    ) -> CardGeneration:
        """Make the edition that follows.

        What was needed before is recreated at once, so that a card that cannot be run is found
        before anything changes.

        Args:
            load_set: The cards there are now.
            changed: The agents that differ now.
            context: What blueprints are made with from now on.

        Raises:
            FastAgentError: A card cannot be run.
        """
        kept = {
            name: blueprint
            for name, blueprint in self._blueprints.items()
            if name in load_set.cards and name not in changed
        }
        edition = CardGeneration(load_set, context, self._builders, kept)
        for name in self._blueprints:
            if name in load_set.cards and name in changed:
                edition.blueprint(name)
        return edition

    def upgrade_to(self, newest: CardGeneration) -> None:
        """Go over to a later edition, once no turn needs what this one alone has."""
        self.load_set = newest.load_set
        self.context = newest.context
        self._blueprints = newest._blueprints


def _loaded_names(load_set: LoadSet) -> str | None:
    names = load_set.cards
    return f"there are {first_of(names, 8)}" if names else None


def with_granted(load_set: LoadSet, servers: Sequence[str], barred: Container[str] = ()) -> LoadSet:
    """Add servers to every agent a user can talk to, whose type uses servers.

    Args:
        load_set: The cards.
        servers: The names of the servers.
        barred: The names of agents that get none.

    Returns:
        The cards with them; the same set where there are none.
    """
    if not servers:
        return load_set
    cards = load_set.cards.items()
    return LoadSet.of([one if name in barred else _granted(one, servers) for name, one in cards])


def _granted(card: Card, servers: Sequence[str]) -> Card:
    config = card.config
    if config.tool_only or "servers" not in FIELDS_OF[config.type]:
        return card
    names = tuple(dict.fromkeys((*config.servers, *servers)))
    return replace(card, config=replace(config, servers=names))
