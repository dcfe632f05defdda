"""RuntimeContext: what the agents of one runtime are made from, each part when it is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from fast_agent.agents.budget import Budget
from fast_agent.agents.offered_tools import NullPool
from fast_agent.errors import RunError
from fast_agent.models.check import check_model_files, select_model
from fast_agent.models.create import ModelFactory
from fast_agent.models.model import ModelRequest
from fast_agent.models.step_model import StepModels
from fast_agent.steps.steps import entered
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
    )
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.delegation.child_history import ChildHistories
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.agents.turn_context import OpenCallMeters, TurnContext
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.client_side import SamplingRequest
    from fast_agent.mcp.offers import ServerResources
    from fast_agent.mcp.pool import ServerPool, ServerReport
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.messages.message import Message
    from fast_agent.models.check import Selection
    from fast_agent.models.create import Models
    from fast_agent.models.model import Model, ModelResponse
    from fast_agent.prompt.instruction import UrlTexts
    from fast_agent.resources.provider import Provider
    from fast_agent.tools.functions.loader import FunctionLoader
    from fast_agent.tools.resource_tools import DocumentLookup
    from fast_agent.tools.skills.gate import SkillGate

    NewModel = Callable[[str, str | None], Model]


class _Closable(Protocol):
    def close(self) -> None:
        """Release what it holds; safe to call twice."""
        ...


_C = TypeVar("_C", bound=_Closable)


class OnDemand(Generic[_C]):
    """A value that is made at the first call, and the same at every later one.

    Args:
        make: Makes it.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], _C]) -> None:
        self._make = make
        self._made: _C | None = None

    def __call__(self) -> _C:
        """Return the value, made now if this is the first call."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def close(self) -> None:
        """Close the value if it was made; safe to call twice."""
        if self._made is not None:
            self._made.close()


@frozen(kw_only=True)
class RuntimeContext:
    """What the agents of one runtime are made from; a reload makes another one.

    Args:
        options: The options of the program.
        settings: The configuration.
        cards: All cards, by name.
        models: Makes models.
        pool: All MCP servers.
        urls: Fetched pages.
        loader: Loads functions, each file as it was at its first use.
        documents: The documents agents may look up.
        turn: The context of turns that nothing else started.
        wanted_model: Returns the model a user chose for an agent over its card, or None.
        clone: Makes an instance of a card by name: (name, messages or None).
        inner: Makes a runtime of other cards, which are built as these are.
    """

    options: RuntimeOptions
    settings: Settings
    cards: Mapping[str, Card]
    models: Models
    pool: ServerPool | NullPool
    urls: UrlTexts
    loader: OnDemand[FunctionLoader]
    documents: OnDemand[DocumentLookup]
    turn: TurnContext
    wanted_model: Callable[[str], str | None]
    clone: Callable[[str, Iterable[Message] | None], Agent]
    inner: MakeRuntime

    @property
    def histories(self) -> ChildHistories:
        """Draws the routes between histories of parents and children."""
        from fast_agent.agents.delegation.child_history import ChildHistories

        options = self.options
        return ChildHistories(
            cards=self.cards, workspace=options.workspace, wanted=options.child_history
        )

    def reloaded(self, settings: Settings | None) -> RuntimeContext:
        """Return the context of the next cards: functions are loaded from the current files.

        Args:
            settings: Another configuration; None keeps the one there is.
        """
        loader = new_loader(self.options)
        if settings is None:
            return replace(self, loader=loader)
        return replace(
            self,
            loader=loader,
            settings=settings,
            models=new_models(settings, self.options),
            documents=new_documents(settings, self.options),
        )

    def model_of(self, config: AgentConfig) -> Selection:
        """Return which model a card's agent asks, and who chose it."""
        options, settings = self.options, self.settings
        selection = select_model(
            config,
            settings,
            options.environ,
            cwd=options.workspace,
            flag=self.wanted_model(config.name),
        )
        if config.grant is not None and selection.source == "card":
            from fast_agent.models.spec import parse_models

            for spec in parse_models(selection.text, settings.model_aliases, settings.endpoints):
                check_model_files(spec, selection.directory, config.grant)
        if selection.source not in {"environment", "key", "fallback"}:
            return selection
        # The machine chose it, not the card: a replay asks the same model.
        chosen = options.steps.fact(f"model of {config.name}", lambda: selection.text)
        return selection if chosen == selection.text else replace(selection, text=chosen)

    def provider_of(self, model: str) -> str | None:
        """Return the provider of a model; None for an offline model.

        Raises:
            ModelError: There is no such model.
        """
        from fast_agent.models.spec import provider_of

        return provider_of(model, self.settings.model_aliases, self.settings.endpoints)


class InnerRuntime(Protocol):
    """The agents of cards that an agent reaches during a turn; live while it is entered."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all cards, in load order."""
        ...

    @property
    def default_name(self) -> str:
        """The name of the agent that answers where none is named; raises RunError without one."""
        ...

    def agent(self, name: str) -> Agent:
        """Return the shared instance of a card; raises FastAgentError where it cannot be run."""
        ...

    def server_resources(self, name: str) -> tuple[ServerResources, ...]:
        """Return the resources of a card's servers, as its agent may use them."""
        ...

    async def open_servers(self, names: Iterable[str]) -> tuple[ServerReport, ...]:
        """Open the servers of some agents, and return how each stands."""
        ...


class MakeRuntime(Protocol):
    """Makes a runtime of a load-set, as `Runtime` is made."""

    def __call__(
        self,
        load_set: LoadSet,
        settings: Settings,
        options: RuntimeOptions | None = None,
        *,
        turn: TurnContext | None = None,
    ) -> AbstractAsyncContextManager[InnerRuntime]:
        """Make it; nothing is open before it is entered."""
        ...


def new_models(settings: Settings, options: RuntimeOptions) -> Models:
    """Return what makes the models of a runtime."""
    models: Models = ModelFactory(settings, options.environ)
    return StepModels(models, settings if options.steps.replays else None)


def new_loader(options: RuntimeOptions) -> OnDemand[FunctionLoader]:
    """Return what loads the functions of cards."""

    def make() -> FunctionLoader:
        from fast_agent.tools.functions.loader import FunctionLoader

        return FunctionLoader(options.workspace)

    return OnDemand(make)


def new_documents(settings: Settings, options: RuntimeOptions) -> OnDemand[DocumentLookup]:
    """Return the documents that resource tools look up."""

    def make() -> DocumentLookup:
        from fast_agent.resources.catalog import Catalog
        from fast_agent.resources.internal.provider import InternalProvider
        from fast_agent.tools.resource_tools import DocumentLookup

        providers = (InternalProvider(), *_guides(settings), *options.providers)
        return DocumentLookup(Catalog(providers))

    return OnDemand(make)


def _guides(settings: Settings) -> Iterator[Provider]:
    """Yield the documents of the configuration's `guide`."""
    from fast_agent.resources.guide.config import configured_guide
    from fast_agent.resources.guide.provider import GuideProvider

    guide = configured_guide(settings)
    if guide is not None:
        yield GuideProvider(guide)


def server_specs(settings: Settings, options: RuntimeOptions) -> tuple[ServerSpec, ...]:
    """Return the servers of the configuration and of the program."""
    from fast_agent.mcp.server import from_settings

    servers, place = (*from_settings(settings.mcp), *options.servers), options.place_server
    return servers if place is None else tuple(map(place, servers))


def new_pool(
    settings: Settings,
    options: RuntimeOptions,
    configs: Collection[AgentConfig],
    sampler: AgentSampler,
    *,
    allow_new_servers: bool,
) -> ServerPool | NullPool:
    """Return all MCP servers; the null pool where no card can have any.

    Args:
        settings: The configuration.
        options: The options of the program.
        configs: The agents there are at first.
        sampler: Answers what servers ask of models.
        allow_new_servers: Whether cards that come later may bring servers.
    """
    if not (allow_new_servers or any(config.servers or config.mcp_connect for config in configs)):
        return NullPool()
    from fast_agent.config.home import home_directory
    from fast_agent.mcp.client_side import ClientSide
    from fast_agent.mcp.listing import SIZES_FILE, ToolSizes
    from fast_agent.mcp.pool import ServerPool

    authorizations = options.authorizations
    offered = ClientSide(
        sampler=sampler,
        approval=options.approval,
        human=options.human,
        authorizations=None if authorizations is None else authorizations(),
    )
    return ServerPool(
        server_specs(settings, options),
        offered=offered,
        clock=options.monotonic,
        sizes=ToolSizes(home_directory(options.environ) / SIZES_FILE),
    )


def with_gate(
    options: RuntimeOptions,
    pool: ServerPool | NullPool,
    configs: Collection[AgentConfig],
    stack: AsyncExitStack,
) -> RuntimeOptions:
    """Ask before a server's skill is used, where there can be such skills.

    The copies of skills on disk are removed when the stack ends.
    """
    # A smart agent has others run cards, which may have servers.
    can_serve = not isinstance(pool, NullPool) or any(one.type == "smart" for one in configs)
    if options.gate is not None or not can_serve:
        return options

    def gate() -> SkillGate:
        from fast_agent.config.home import home_directory
        from fast_agent.tools.skills.gate import APPROVALS_FILE, SkillApprovals, SkillGate

        approvals = SkillApprovals(home_directory(options.environ) / APPROVALS_FILE)
        return SkillGate(options.human, approvals)

    made = OnDemand(gate)
    stack.callback(made.close)
    return replace(options, gate=made)


class AgentSampler:
    """Answers with the model the configuration sets for the server, else with the agent's own.

    The server's text goes into a separate conversation: it sees nothing of the agent's.

    Args:
        new_model: Makes a model: (agent's name, spec or None for the agent's own).
        charges: Knows the agent's turn, which is charged and whose limits hold.
    """

    def __init__(self, new_model: NewModel, charges: OpenCallMeters) -> None:
        self._new_model = new_model
        self._charges = charges

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        """Answer one request.

        Raises:
            LimitError: A usage limit of the agent was reached.
            RunError: No agent is using the server.
            FastAgentError: The model did not answer.
        """
        if not request.agent_names:
            raise RunError(f"no agent is using server `{request.server_name}`")
        agent = request.agent_names[0]
        meters, place = self._charges.newest(agent)
        budget = Budget(meters)
        model = self._new_model(agent, request.model)
        wanted = ModelRequest(
            request.system,
            request.messages,
            () if request.tool_choice == "none" else request.tools,
            request.params,
        )
        try:
            await budget.wait_for_room()
            budget.take_request()
            try:
                with entered(place):  # this task is the connection's, not the turn's
                    response = await model.request(wanted)
            except BaseException:
                budget.give_up()
                raise
            budget.record_usage(response.usage)
            return model.name, response
        finally:
            await model.aclose()
