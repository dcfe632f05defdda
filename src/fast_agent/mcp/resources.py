"""The resources of one server as one agent may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import ToolError
from fast_agent.mcp.content import bounded, from_sdk
from fast_agent.mcp.offers import ServerOffers
from fast_agent.mcp.untrusted import one_line
from fast_agent.messages.content import EmbeddedResource

if TYPE_CHECKING:
    from fast_agent.mcp.listed import ListedResource, ListedTemplate
    from fast_agent.messages.content import Content


class ServerResources(ServerOffers):
    """The resources of one server, filtered for one agent."""

    async def resources(self) -> tuple[ListedResource, ...]:
        """Give the resources the agent may read.

        Raises:
            ToolError: The server cannot be reached.
        """
        listed = await self._connection.catalog.resources()
        return tuple(entry for entry in listed if self._allows(entry.uri))

    async def templates(self) -> tuple[ListedTemplate, ...]:
        """Give the templates; what they make is filtered when it is read.

        Raises:
            ToolError: The server cannot be reached.
        """
        return await self._connection.catalog.templates()

    async def read(
        self, uri: str, *, agent_name: str | None = None
    ) -> tuple[EmbeddedResource, ...]:
        """Read a resource.

        Args:
            uri: Its URI, listed or made from a template.
            agent_name: The agent it is for.

        Returns:
            Its contents, ready to be put into a message.

        Raises:
            ToolError: The filters do not allow it, or the server does not give it.
        """
        if not self._allows(uri):
            raise self._closed("resource", uri)
        result = await self._ask(
            "resources/read", lambda client: client.read_resource(uri), agent_name
        )
        from mcp import types

        blocks: list[Content] = [
            from_sdk(types.EmbeddedResource(type="resource", resource=contents))
            for contents in result.contents
        ]
        limit = self._connection.spec.result_limit
        kept = bounded(blocks, limit)
        if any(not isinstance(block, EmbeddedResource) for block in kept):
            raise ToolError(
                f"the resource `{one_line(uri)}` of server `{self.server_name}` is too large",
                hint=f"the limit is {limit:,} characters of text, 16 times that of base64",
            )
        return tuple(block for block in kept if isinstance(block, EmbeddedResource))

    def _allows(self, uri: str) -> bool:
        return self._allowed.allows_resource(self.server_name, uri)
