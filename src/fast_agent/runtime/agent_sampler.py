"""Sampling: answering MCP servers that ask for a model's answer while an agent uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.models.model import ModelRequest
from fast_agent.runtime.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.mcp.sampling import SamplingRequest
    from fast_agent.models.model import Model, ModelResponse
    from fast_agent.runtime.scope import Charges


class AgentSampler:
    """Answers with the model the configuration sets for the server, else with the agent's own.

    The server's text goes into a conversation of its own: it sees nothing of the agent's.

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
        budget = Budget(self._charges.meters_of(agent))
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
                response = await model.request(wanted)
            except BaseException:
                budget.give_up()
                raise
            budget.settle(response.usage)
            return model.name, response
        finally:
            await model.aclose()
