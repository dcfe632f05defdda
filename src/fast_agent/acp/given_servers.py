"""Given servers: the MCP servers a client wants the agents of a session to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.acp.params import objects, text, texts, wrong
from fast_agent.errors import ConfigError
from fast_agent.mcp.server import HttpTarget, ServerSpec, StdioTarget, checked_url, unique_name
from fast_agent.trust.programs import is_launcher

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from fast_agent.mcp.server import Target
    from fast_agent.text.json_value import JsonObject

_DECLARED = "mcpServers"


def read_servers(params: JsonObject, *, cwd: Path, taken: Collection[str]) -> list[ServerSpec]:
    """Read the servers of a request.

    Args:
        params: The request's.
        cwd: Where servers that are started run; of launchers that is decided elsewhere.
        taken: Names of other servers; one that is taken gets a number.

    Raises:
        Refused: One of them is wrong.
    """
    specs: list[ServerSpec] = []
    for index, server in enumerate(objects(params, _DECLARED)):
        place = f"{_DECLARED}[{index}]"
        name = text(server, "name").strip().replace("__", "_") or "server"
        name = unique_name(name, {*taken, *(spec.name for spec in specs)})
        try:
            specs.append(
                ServerSpec(name=name, target=_target(server, place, cwd), declared=_DECLARED)
            )
        except ConfigError as error:
            raise wrong(place, f"cannot be used: {error.message}") from None
    return specs


def _target(server: JsonObject, place: str, cwd: Path) -> Target:
    kind = server.get("type", "stdio")
    if kind == "http":
        url = checked_url(text(server, "url"), f"{place}.url")
        return HttpTarget(url=url, headers=_pairs(server, "headers"))
    if kind != "stdio":
        raise wrong(f"{place}.type", "must be `http`, or left out for a command")
    command = text(server, "command")
    if not command.strip():
        raise wrong(f"{place}.command", "is empty")
    args = texts(server, "args")
    where = None if is_launcher(command, args) else cwd
    return StdioTarget(command=command, args=args, env=_pairs(server, "env"), cwd=where)


def _pairs(server: JsonObject, name: str) -> dict[str, str]:
    return {text(pair, "name"): text(pair, "value") for pair in objects(server, name)}
