"""What one server offers as one agent may use it: what the kinds of offers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from fast_agent.errors import ToolError
from fast_agent.mcp.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client import Client

    from fast_agent.mcp.connection import Connection
    from fast_agent.tools.filter import ServerFilter

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

    def _closed(self, kind: Kind, name: str) -> ToolError:
        """Say that the agent's filters do not allow something."""
        shown = one_line(name)
        return ToolError(
            f"the {kind} `{shown}` of server `{self.server_name}` is not open to this agent",
            hint=f"its card's `{kind}s` filter does not allow it",
        )
