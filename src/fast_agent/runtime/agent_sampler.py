"""Sampling: answering MCP servers that ask for a model's answer while an agent uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.models.model import ModelRequest
from fast_agent.runtime.budget import Budget, Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.mcp.sampling import SamplingRequest
    from fast_agent.models.model import Model, ModelResponse


class AgentSampler:
    """Answers with the model the configuration sets for the server, else with the agent's own.

    The server's text goes into a conversation of its own: it sees nothing of the agent's.

    Args:
        new_model: Makes a model: (agent's name, spec or None for the agent's own).
        meter: What is charged.
    """

    def __init__(self, new_model: Callable[[str, str | None], Model], meter: Meter) -> None:
        self._new_model = new_model
        self._budget = Budget((meter,))

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        """Answer one request.

        Raises:
            RunError: No agent is using the server.
            FastAgentError: The model did not answer.
        """
        if not request.agent_names:
            raise RunError(f"no agent is using server `{request.server_name}`")
        model = self._new_model(request.agent_names[0], request.model)
        try:
            self._budget.take_request()
            response = await model.request(
                ModelRequest(
                    request.system,
                    request.messages,
                    () if request.tool_choice == "none" else request.tools,
                    request.params,
                )
            )
            self._budget.settle(response.usage)
            return model.name, response
        finally:
            await model.aclose()
