"""Files of MCP servers: `.mcp.json`, `.vscode/mcp.json`, `claude_desktop_config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics import rules
from fast_agent.formats.servers import read_server

if TYPE_CHECKING:
    from fast_agent.formats.foreign import Fields, ForeignFile
    from fast_agent.formats.servers import Server

_GROUPS: Final = ("mcpServers", "servers", "mcp")
_OPENCODE: Final = {
    "permission": ("what all agents may do", "write `files`, `shell` and `confirm` in the cards"),
    "tools": ("tools of all agents", "write `files`, `shell` and `fetch` in the cards"),
    "instructions": ("files of instructions", "write `{{file:PATH}}` in the body of a card"),
    "model": ("the model of all agents", "write `default_model` in the configuration"),
    "small_model": ("a model for titles", None),
    "provider": ("addresses of providers", "write `PROVIDER.base_url` in the configuration"),
    "command": ("short names of messages", "keep them as files for `go --prompt-file`"),
    "default_agent": ("who is talked to first", "write `default: true` in its card"),
}
_PROGRAM: Final = ("a setting of the other program", None)


def read_server_file(file: ForeignFile) -> list[Server]:
    """Read the servers of a file; every other setting in it is reported.

    Args:
        file: The file.

    Returns:
        The servers, for `mcp.servers` of the configuration.
    """
    top = file.fields()
    servers: list[Server] = []
    for group in _GROUPS:
        if isinstance(top.values.get(group), Mapping):
            inner = top.below(group)
            if inner is not None:
                _read_group(inner, servers)
    top.lost(
        "inputs",
        "`inputs` asks for values; here each is an environment variable",
        "set the variables that the servers name",
    )
    if file.format == "opencode":
        for group in ("agent", "mode", "agents"):
            if isinstance(top.values.get(group), Mapping):
                top.below(group)
        for name in ("model", "instructions"):
            if (name,) in file.mapped:  # by the agents of the file
                top.take(name)
        top.none_of(_OPENCODE)
    top.take("$schema")  # for editors: nothing an agent does depends on it
    top.none_of(
        dict.fromkeys(top.values.keys() - set(_GROUPS) - {"agent", "mode", "agents"}, _PROGRAM)
    )
    top.close("such a file")
    return servers


def _read_group(inner: Fields, servers: list[Server]) -> None:
    for name, value in inner.values.items():
        below = inner.below(name) if isinstance(value, Mapping) else None
        if below is None:
            continue
        server = read_server(name, below)
        if server is None:
            message = f"the server `{name}` has neither a command nor an address"
            inner.file.note(rules.LOST_FIELD, message, below.keys, "give it one of them")
        else:
            servers.append(server)
    inner.close("a mapping of servers")
