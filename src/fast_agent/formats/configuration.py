"""MCP servers written into a configuration file that a person may have written by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen
from fast_agent.text.yaml_document import YamlError, parse_yaml
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.formats.servers import Server
    from fast_agent.text.json_value import JsonValue

_INDENT = re.compile(r"^( *)\S")


@frozen
class ServersAdded:
    """A configuration with servers added.

    Args:
        text: The whole file; None where nothing was added, or nothing could be.
        added: The names of the servers that were added.
        kept: The names of those that were there, and stay as they were.
        block: What to add by hand, where the file could not be changed; else empty.
    """

    text: str | None
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    block: str = ""


def known_servers(text: str | None) -> tuple[str, ...]:
    """Return the names of the MCP servers of a configuration; none where it cannot be read."""
    value = _value(text or "")
    return tuple(_servers(value)) if value is not None else ()


def add_servers(text: str | None, servers: Sequence[Server]) -> ServersAdded:
    """Add servers to a configuration; comments and everything else in it stay.

    Args:
        text: The file; None where there is none.
        servers: The servers.

    Returns:
        The new file.
    """
    there = known_servers(text)
    wanted = {server.name: server for server in servers if server.name not in there}
    kept = tuple(server.name for server in servers if server.name in there)
    if not wanted:
        return ServersAdded(None, kept=kept)
    entries: dict[str, JsonValue] = {name: one.settings for name, one in wanted.items()}
    block = write_yaml({"mcp": {"servers": entries}})
    if text is None or not text.strip():
        return ServersAdded(block, tuple(wanted), kept)
    changed = _inserted(text, entries, block)
    value = None if changed is None else _value(changed)
    if value is None or not wanted.keys() <= _servers(value).keys():
        return ServersAdded(None, kept=kept, block=block)
    return ServersAdded(changed, tuple(wanted), kept)


def _inserted(text: str, entries: dict[str, JsonValue], block: str) -> str | None:
    value = _value(text)
    if value is None:
        return None
    if "mcp" not in value:
        return f"{text.rstrip()}\n\n{block}"
    document = parse_yaml(text)
    if not _servers(value):
        return None
    lines = text.split("\n")
    first = next(iter(_servers(value)))
    at = document.span_of(("mcp", "servers", first), key=True).start
    head = lines[at.line - 1]
    found = _INDENT.match(head)
    if found is None or len(found[1]) != at.column - 1:
        return None  # the servers are in braces
    added = [f"{found[1]}{line}" for line in write_yaml(entries).rstrip("\n").split("\n")]
    return "\n".join([*lines[: at.line - 1], *added, *lines[at.line - 1 :]])


def _value(text: str) -> Mapping[str, JsonValue] | None:
    try:
        value = parse_yaml(text).value
    except YamlError:
        return None
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def _servers(value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    mcp = value.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    return servers if isinstance(servers, Mapping) else {}
