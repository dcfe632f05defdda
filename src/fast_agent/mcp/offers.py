"""What one server offers as one agent may use it: what the kinds of offers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from fast_agent.errors import ToolError
from fast_agent.mcp.content import bounded, from_sdk, one_line
from fast_agent.messages.message import EmbeddedResource, Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.client import Client
    from mcp.types import PromptReference, ResourceTemplateReference

    from fast_agent.mcp.connection import Connection
    from fast_agent.mcp.listing import ListedPrompt, ListedResource, ListedTemplate
    from fast_agent.messages.message import Content
    from fast_agent.tools.toolbox import ServerFilter

Kind: TypeAlias = Literal["prompt", "resource"]
T = TypeVar("T")


class ServerOffers:
    """What one server offers, filtered for one agent.

    Args:
        connection: The server, shared with other agents.
        allowed: The agent's filters. They hold when a thing is used as much as when it is listed.
    """

    def __init__(self, connection: Connection, allowed: ServerFilter) -> None:
        self._connection = connection
        self._allowed = allowed

    @property
    def server_name(self) -> str:
        """The server's name."""
        return self._connection.name

    async def _ask(
        self, method: str, send: Callable[[Client], Awaitable[T]], agent_name: str | None
    ) -> T:
        """Make a request that changes nothing at the server, so that it may be sent again.

        Args:
            method: The protocol's method, for messages.
            send: Sends it by the SDK's client and awaits the answer.
            agent_name: The agent it is for.

        Raises:
            ToolError: The server does not answer, or refuses.
        """
        return await self._connection.request(
            method, lambda client, _call: send(client), repeatable=True, agent_name=agent_name
        )

    async def _completed(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: tuple[str, str],
        given: Mapping[str, str],
        agent_name: str | None,
    ) -> tuple[str, ...]:
        """Ask the server for the values of an argument; see `ServerPrompts.complete`."""
        name, value = argument
        result = await self._ask(
            "completion/complete",
            lambda client: client.complete(
                ref, {"name": name, "value": value}, dict(given) if given else None
            ),
            agent_name,
        )
        return tuple(result.completion.values)

    def _closed(self, kind: Kind, name: str) -> ToolError:
        """Return the error that the agent's filters do not allow something."""
        shown = one_line(name)
        return ToolError(
            f"the {kind} `{shown}` of server `{self.server_name}` is not open to this agent",
            hint=f"its card's `{kind}s` filter does not allow it",
        )


class ServerPrompts(ServerOffers):
    """The prompts of one server, filtered for one agent."""

    async def prompts(self) -> tuple[ListedPrompt, ...]:
        """Return the prompts the agent may use.

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
            ToolError: The filters do not allow it, or the server does not have it.
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

    async def complete(
        self,
        name: str,
        argument: tuple[str, str],
        given: Mapping[str, str],
        *,
        agent_name: str | None = None,
    ) -> tuple[str, ...]:
        """Return values that the server proposes for an argument of a prompt.

        Args:
            name: The prompt's name at the server.
            argument: The argument's name, and the start of its value.
            given: The values of other arguments.
            agent_name: The agent it is for.

        Raises:
            ToolError: The filters do not allow the prompt, or the server completes nothing.
        """
        from mcp import types

        if not self._allows(name):
            raise self._closed("prompt", name)
        ref = types.PromptReference(type="ref/prompt", name=name)
        return await self._completed(ref, argument, given, agent_name)

    def _allows(self, name: str) -> bool:
        return self._allowed.allows_prompt(self.server_name, name)


class ServerResources(ServerOffers):
    """The resources of one server, filtered for one agent."""

    async def resources(self) -> tuple[ListedResource, ...]:
        """Return the resources the agent may read.

        Raises:
            ToolError: The server cannot be reached.
        """
        listed = await self._connection.catalog.resources()
        return tuple(entry for entry in listed if self._allows(entry.uri))

    async def templates(self) -> tuple[ListedTemplate, ...]:
        """Return the templates; what they make is filtered when it is read.

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
            ToolError: The filters do not allow it, or the server does not have it.
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

    async def complete(
        self,
        template: str,
        argument: tuple[str, str],
        given: Mapping[str, str],
        *,
        agent_name: str | None = None,
    ) -> tuple[str, ...]:
        """Return values that the server proposes for a variable of a resource template.

        Args:
            template: The template as it is listed.
            argument: The variable's name, and the start of its value.
            given: The values of other variables.
            agent_name: The agent it is for.

        Raises:
            ToolError: The server completes nothing.
        """
        from mcp import types

        ref = types.ResourceTemplateReference(type="ref/resource", uri=template)
        return await self._completed(ref, argument, given, agent_name)

    def _allows(self, uri: str) -> bool:
        return self._allowed.allows_resource(self.server_name, uri)
