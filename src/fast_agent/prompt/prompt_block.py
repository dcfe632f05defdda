"""Blocks of a system prompt that list servers, agents and surroundings; every value is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_IN_ATTRIBUTE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;"}
)


@frozen
class ServerInstructions:
    """What an MCP server says about its use."""

    name: str
    text: str


@frozen
class AgentListing:
    """A child agent as a prompt shows it.

    Args:
        name: Its card's name.
        description: What it does; empty where nothing says so.
        servers: The names of its MCP servers.
    """

    name: str
    description: str = ""
    servers: tuple[str, ...] = ()


def servers_block(servers: Iterable[ServerInstructions]) -> str:
    """Write one element for each server with instructions; empty if there is none."""
    return "\n".join(
        [
            f"<mcp-server{attribute('name', server.name)}>\n"
            f"{escaped(server.text.strip())}\n</mcp-server>"
            for server in servers
            if server.text.strip()
        ]
    )


def agents_block(agents: Iterable[AgentListing]) -> str:
    """Write a list of agents with names, servers and descriptions; empty for none."""
    lines = [_agent_line(agent) for agent in agents]
    return "\n".join(["<agents>", *lines, "</agents>"]) if lines else ""


def environment_block(*, date: str, platform: str, python: str, workspace: str) -> str:
    """Write where and when an agent runs."""
    return "\n".join(
        [
            "<environment>",
            f"<date>{escaped(date)}</date>",
            f"<platform>{escaped(platform)}</platform>",
            f"<python>{escaped(python)}</python>",
            f"<workspace>{escaped(workspace)}</workspace>",
            "</environment>",
        ]
    )


def escaped(text: str) -> str:
    """Escape text that goes between two tags, so that it cannot close or open one."""
    return text.translate(_IN_TEXT)


def attribute(name: str, value: str) -> str:
    """Write an attribute of a tag, with a space before it."""
    return f' {name}="{value.translate(_IN_ATTRIBUTE)}"'


def _agent_line(agent: AgentListing) -> str:
    attributes = attribute("name", agent.name)
    if agent.servers:
        attributes += attribute("servers", ", ".join(agent.servers))
    description = escaped(agent.description.strip())
    return f"<agent{attributes}>{description}</agent>" if description else f"<agent{attributes}/>"
