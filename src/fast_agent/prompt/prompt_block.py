"""Blocks of a system prompt: servers, agents, surroundings, packaged documents; all escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.resources.internal.provider import InternalDocument, InternalProvider

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


def resources_block(documents: Iterable[InternalDocument]) -> str:
    """Write an index of documents: URI, what it holds, why to read it, and its size in tokens.

    Args:
        documents: What to list, in order.

    Returns:
        The block; empty for none.
    """
    entries = [
        f"<resource>\n<uri>{escaped(one.uri.text)}</uri>\n"
        f"<description>{escaped(one.description)}</description>\n"
        f"<why>{escaped(one.why)}</why>\n<tokens>{one.tokens}</tokens>\n</resource>"
        for one in documents
    ]
    if not entries:
        return ""
    return "\n".join(["<available_resources>", *entries, "</available_resources>"])


@cache
def internal_index() -> str:
    """Write the index of the packaged documents; single skills are left to the list of skills.

    Raises:
        ResourceError: They are missing from this installation.
    """
    return resources_block(_provider().index)


@cache
def internal_text(document_id: str) -> str:
    """Read a packaged document.

    Args:
        document_id: What stands in `{{internal:ID}}`.

    Raises:
        ResourceError: There is none; the hint names the closest.
    """
    provider = _provider()
    return provider.text_of(provider.find(document_id))


@cache
def _provider() -> InternalProvider:
    # Imported when a card speaks of it, so that other cards do not wait for it.
    from fast_agent.resources.internal.provider import InternalProvider

    return InternalProvider()
