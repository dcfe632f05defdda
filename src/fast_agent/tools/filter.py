"""Filters a card sets per MCP server: which tools, resources and prompts its agent may use.

They hold when a thing is used as much as when it is listed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig

Patterns: TypeAlias = "Mapping[str, Sequence[str]] | None"
"""Patterns by server name. No mapping, or a server that is not in it: everything is allowed."""


def allows(patterns: Patterns, server: str, name: str) -> bool:
    """Return whether `name` of `server` passes.

    Args:
        patterns: `*`, `?` and `[...]` patterns by server, case-sensitive.
        server: The server's name.
        name: A tool's or prompt's name, or a resource's URI, as the server has it.

    Returns:
        True for a server without patterns; else whether one of them matches, so that an empty list
        allows nothing.
    """
    if patterns is None or server not in patterns:
        return True
    return any(fnmatchcase(name, pattern) for pattern in patterns[server])


@frozen(kw_only=True)
class ServerFilter:
    """The three filters of one agent.

    Args:
        tools: Patterns of tool names by server.
        resources: Patterns of resource URIs by server.
        prompts: Patterns of prompt names by server.
    """

    tools: Patterns = None
    resources: Patterns = None
    prompts: Patterns = None

    @classmethod
    def of(cls, config: AgentConfig) -> ServerFilter:
        """Take the filters of a card."""
        return cls(tools=config.tools, resources=config.resources, prompts=config.prompts)

    def allows_tool(self, server: str, name: str) -> bool:
        """Return whether the tool may be listed and called."""
        return allows(self.tools, server, name)

    def allows_resource(self, server: str, uri: str) -> bool:
        """Return whether the resource may be listed and read."""
        return allows(self.resources, server, uri)

    def allows_prompt(self, server: str, name: str) -> bool:
        """Return whether the prompt may be listed and used."""
        return allows(self.prompts, server, name)
