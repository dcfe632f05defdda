"""The prompts of one server as one agent may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.mcp.content import bounded, from_sdk
from fast_agent.mcp.offers import ServerOffers
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.mcp.listed import ListedPrompt


class ServerPrompts(ServerOffers):
    """The prompts of one server, filtered for one agent."""

    async def prompts(self) -> tuple[ListedPrompt, ...]:
        """Give the prompts the agent may use.

        Raises:
            ToolError: The server cannot be reached.
        """
        listed = await self._connection.catalog.prompts()
        return tuple(entry for entry in listed if self._allows(entry.name))

    async def get(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        agent_name: str | None = None,
    ) -> tuple[Message, ...]:
        """Get the messages of a prompt.

        Args:
            name: Its name at the server.
            arguments: What it is filled with.
            agent_name: The agent it is for.

        Raises:
            ToolError: The filters do not allow it, or the server does not give it.
        """
        if not self._allows(name):
            raise self._closed("prompt", name)
        result = await self._ask(
            "prompts/get",
            lambda client: client.get_prompt(name, dict(arguments or {})),
            agent_name,
        )
        limit = self._connection.spec.result_limit
        return tuple(
            Message(message.role, bounded([from_sdk(message.content)], limit))
            for message in result.messages
        )

    def _allows(self, name: str) -> bool:
        return self._allowed.allows_prompt(self.server_name, name)
