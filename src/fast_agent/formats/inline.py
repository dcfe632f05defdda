"""What several formats have in an agent's own file: MCP servers, skills, agents it may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules
from fast_agent.formats.foreign import Fields
from fast_agent.formats.servers import read_server, server_name

if TYPE_CHECKING:
    from fast_agent.formats.draft import Draft
    from fast_agent.text.json_value import JsonValue


def take_servers(draft: Draft, fields: Fields, name: str) -> None:
    """Take a mapping of servers into `mcp_connect` and `tools`."""
    inner = fields.below(name)
    if inner is None:
        return
    for key, value in inner.values.items():
        if isinstance(value, Mapping):
            below = inner.below(key)
            if below is not None:
                _connect(draft, key, below)
        else:
            inner.take(key)
            draft.servers.setdefault(server_name(key), [])
    inner.close("a mapping of servers")


def take_server_names(draft: Draft, fields: Fields, name: str) -> None:
    """Take a list of names of servers, or of mappings from a name to a server."""
    value = fields.take(name)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, str):
            draft.servers.setdefault(server_name(item), [])
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                if isinstance(inner, Mapping):
                    place = (*fields.keys, name, index, key)
                    _connect(draft, key, Fields(draft.file, inner, place))
                else:
                    draft.servers.setdefault(server_name(key), [])


def _connect(draft: Draft, name: str, fields: Fields) -> None:
    place = fields.keys
    server = read_server(name, fields)
    if server is None:
        draft.file.note(
            rules.LOST_FIELD,
            f"the server `{name}` has neither a command nor an address here",
            place,
            "describe it in the configuration, and name it under `servers`",
        )
        return
    if server.settings.get("enabled") is False:
        draft.file.note(rules.LOST_FIELD, f"the server `{name}` is disabled", place, None)
        return
    if "cwd" in server.settings:
        draft.file.note(
            rules.LOST_FIELD,
            f"the working directory of the server `{name}` cannot be written into a card",
            place,
            "describe the server in the configuration, which has `cwd`",
        )
    add_connect(draft, server.connect())
    draft.own_servers.add(server.name)
    if server.tools is not None:
        draft.servers.setdefault(server.name, []).extend(server.tools)


def add_connect(draft: Draft, entry: JsonValue) -> None:
    """Add an item to `mcp_connect`."""
    items = draft.values.setdefault("mcp_connect", list["JsonValue"]())
    if isinstance(items, list):
        items.append(entry)


def take_skills(draft: Draft, fields: Fields, name: str) -> None:
    """Record names of skills, whose directories are searched for when all files are read."""
    names = fields.words(name) if fields.has(name) else None
    draft.skills += [(one, (*fields.keys, name)) for one in names or ()]


def take_agents(draft: Draft, fields: Fields, name: str) -> None:
    """Take names of agents it may call."""
    names = fields.words(name) if fields.has(name) else None
    draft.agents += [(one, (*fields.keys, name)) for one in names or ()]
