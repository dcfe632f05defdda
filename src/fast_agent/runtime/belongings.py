"""Belongings: what all agents of a runtime use together, each made when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.agents.budget import Budget
from fast_agent.errors import RunError
from fast_agent.mcp.null_pool import NullPool
from fast_agent.models.create import ModelFactory
from fast_agent.models.model import ModelRequest
from fast_agent.models.step_model import StepModels
from fast_agent.prompt.url_text import UrlTexts, fetch_text
from fast_agent.steps.steps import entered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fast_agent.agents.scope import Charges
    from fast_agent.agents.surroundings import Surroundings
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.pool import ServerPool
    from fast_agent.mcp.sampling import SamplingRequest
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.models.create import Models
    from fast_agent.models.model import Model, ModelResponse
    from fast_agent.resources.provider import Provider
    from fast_agent.tools.function_loader import FunctionLoader
    from fast_agent.tools.resource_tools import ResourceShelf
    from fast_agent.tools.skill_gate import SkillGate


class Belongings:
    """Models, pages, servers, functions, documents and the gate of skills.

    Args:
        settings: The configuration.
        around: The options of the program.
        configs: The agents there are at first.
        charges: Where calls of server tools are entered while they are open.
        sampling_model: Makes the model that answers a server: (agent, spec or None).
        grows: Whether cards that come later may bring servers.

    Attributes:
        models: Makes models.
        urls: Fetched pages.
        pool: All MCP servers; None where no card has any.
        gate: Gives what asks before a skill of a server is used, the same at every call; None
            where there can be no such skill.
    """

    def __init__(
        self,
        settings: Settings,
        around: Surroundings,
        configs: Collection[AgentConfig],
        *,
        charges: Charges,
        sampling_model: Callable[[str, str | None], Model],
        grows: bool = False,
    ) -> None:
        self._settings = settings
        self._around = around
        self.models = self._new_models()
        self.urls = UrlTexts(fetch_text, around.monotonic)
        self.pool: ServerPool | NullPool = NullPool()
        has_servers = grows or any(config.servers or config.mcp_connect for config in configs)
        if has_servers:
            self.pool = self._new_pool(charges, sampling_model)
        # A smart agent has others run cards, which may have servers.
        strange = has_servers or any(config.type == "smart" for config in configs)
        self.gate = around.gate or (self._skill_gate if strange else None)
        self._loader: FunctionLoader | None = None
        self._shelf: ResourceShelf | None = None
        self._former_shelves: list[ResourceShelf] = []
        self._gate: SkillGate | None = None

    def loader(self) -> FunctionLoader:
        """Return the loader of functions, the same until `renew_loader`."""
        if self._loader is None:
            from fast_agent.tools.function_loader import FunctionLoader

            around = self._around
            self._loader = FunctionLoader(around.workspace)
        return self._loader

    def renew_loader(self) -> Callable[[], None]:
        """Load functions from the current contents of their files.

        Returns:
            A function that takes that back.
        """
        before, self._loader = self._loader, None

        def undo() -> None:
            self._loader = before

        return undo

    def renew_settings(self, settings: Settings) -> Callable[[], None]:
        """Use another configuration from now on; `ServerPool.change` comes first.

        Returns:
            A function that takes that back, but for the servers.
        """
        before = self._settings, self.models, self._shelf
        self._settings, self._shelf = settings, None
        self.models = self._new_models()
        if before[2] is not None:
            self._former_shelves.append(before[2])  # a turn under way may use it
        self.pool.renew(self._specs())

        def undo() -> None:
            self._settings, self.models, self._shelf = before

        return undo

    def _new_models(self) -> Models:
        models: Models = ModelFactory(self._settings, self._around.environ)
        replays = self._around.steps.replays
        return StepModels(models, self._settings if replays else None)

    def _specs(self) -> tuple[ServerSpec, ...]:
        from fast_agent.mcp.server import from_settings

        servers = (*from_settings(self._settings.mcp), *self._around.servers)
        place = self._around.place_server
        return servers if place is None else tuple(map(place, servers))

    def shelf(self) -> ResourceShelf:
        """Return the documents agents may look up, the same at every call."""
        if self._shelf is None:
            from fast_agent.resources.catalog import Catalog
            from fast_agent.resources.internal.provider import InternalProvider
            from fast_agent.tools.resource_tools import ResourceShelf

            catalog = Catalog((InternalProvider(), *self._guides(), *self._around.providers))
            self._shelf = ResourceShelf(catalog)
        return self._shelf

    def close(self) -> None:
        """Release everything except servers; safe to call twice."""
        if self._loader is not None:
            self._loader.close()
        for shelf in (*self._former_shelves, self._shelf):
            if shelf is not None:
                shelf.close()

    def _new_pool(
        self, charges: Charges, sampling_model: Callable[[str, str | None], Model]
    ) -> ServerPool:
        from fast_agent.mcp.client_side import ClientSide
        from fast_agent.mcp.pool import ServerPool

        around = self._around
        sampler = AgentSampler(sampling_model, charges)
        authorizations = around.authorizations
        return ServerPool(
            self._specs(),
            offered=ClientSide(
                sampler=sampler,
                approval=around.approval,
                human=around.human,
                authorizations=None if authorizations is None else authorizations(),
            ),
            clock=around.monotonic,
        )

    def _skill_gate(self) -> SkillGate:
        if self._gate is None:
            from fast_agent.config.home import home_directory
            from fast_agent.resources.skill_client.approvals import FILE, SkillApprovals
            from fast_agent.tools.skill_gate import SkillGate

            approvals = SkillApprovals(home_directory(self._around.environ) / FILE)
            self._gate = SkillGate(self._around.human, approvals)
        return self._gate

    def _guides(self) -> tuple[Provider, ...]:
        """Return the documents of the configuration's `guide`."""
        from fast_agent.resources.guide.file import configured_guide
        from fast_agent.resources.guide.provider import GuideProvider

        guide = configured_guide(self._settings)
        return () if guide is None else (GuideProvider(guide),)


class AgentSampler:
    """Answers with the model the configuration sets for the server, else with the agent's own.

    The server's text goes into a separate conversation: it sees nothing of the agent's.

    Args:
        new_model: Makes a model: (agent's name, spec or None for the agent's own).
        charges: Knows the agent's turn, which is charged and whose limits hold.
    """

    def __init__(self, new_model: Callable[[str, str | None], Model], charges: Charges) -> None:
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
            budget.settle(response.usage)
            return model.name, response
        finally:
            await model.aclose()
