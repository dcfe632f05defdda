"""MCP servers of cards as other tools describe them, and the names of their tools there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fast_agent.config.server import is_url, split_command
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cards.agent_config import McpConnect
    from fast_agent.text.json_value import JsonValue

Target: TypeAlias = Literal[
    "claude", "copilot", "opencode", "gemini", "codex", "docker-agent", "crewai"
]

SERVERS_FIELD: Final[Mapping[Target, str]] = {
    "claude": "mcpServers",
    "copilot": "mcp-servers",
    "gemini": "mcp_servers",
    "codex": "mcp_servers",
    "docker-agent": "toolsets",
}
"""The field of an agent that describes its own servers; the other tools have none."""

SERVERS_FILE: Final[Mapping[Target, str]] = {
    "claude": ".mcp.json",
    "copilot": ".vscode/mcp.json",
    "opencode": "opencode.json",
    "gemini": ".gemini/settings.json",
}
"""The file that describes the servers of all agents, for tools whose agents name them."""

_FILTER: Final[Mapping[Target, str]] = {
    "gemini": "include_tools",
    "codex": "enabled_tools",
    "docker-agent": "tools",
}
"""The setting of a server that names its tools, where the agent's own list does not."""

_REMOTE: Final[Mapping[Target, dict[str, JsonValue]]] = {
    "claude": {"type": "http"},
    "copilot": {"type": "http"},
    "gemini": {"type": "http"},
}
_LOCAL: Final[Mapping[Target, dict[str, JsonValue]]] = {"copilot": {"type": "local"}}
_REPLACED: Final[Mapping[Target, Mapping[str, str]]] = {
    "copilot": dict.fromkeys(("command", "args", "env", "url", "headers"), "${%s}"),
    "gemini": dict.fromkeys(("env", "headers"), "${%s}"),
    "docker-agent": dict.fromkeys(("env", "headers"), "${env.%s}"),
}
"""Where tools replace variables in an agent's servers, and how they write them."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::([^{}]*))?\}")
_BEARER = re.compile(r"Bearer \$\{([A-Za-z_]\w*):?\}")
_NOT_CLAUDE = re.compile(r"[^A-Za-z0-9_-]")
_GEMINI = re.compile(r"[A-Za-z0-9_.:-]+")
_WILD = frozenset("*?[")


@dataclass(slots=True)
class ExportedServer:
    """A server of `mcp_connect` as another tool describes it.

    Args:
        settings: Its description there.
        kept: Variables that stay as text, because the tool does not replace them.
        unnamed: Patterns of tools that the tool cannot name, so that it has fewer tools there.
    """

    settings: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    kept: list[str] = field(default_factory=list[str])
    unnamed: list[str] = field(default_factory=list[str])


def export_server(
    target: Target, connect: McpConnect, tools: Sequence[str] | None
) -> ExportedServer | None:
    """Describe a server as a tool does.

    Args:
        target: The tool.
        connect: The server.
        tools: The patterns of its tools that the agent may use; None for all of them.

    Returns:
        The description, or None where the server's line is not a command.
    """
    made = _Settings(target, connect)
    out = made.out
    try:
        settings = made.remote() if is_url(connect.target) else made.local()
    except ConfigError:
        return None
    out.settings |= settings
    if target == "copilot":
        out.settings["tools"] = ["*"]  # the agent's own `tools` name some of them
    elif target in _FILTER and tools is not None and "*" not in tools:
        exact = [one for one in tools if not _WILD & set(one)]
        out.unnamed += [one for one in tools if one not in exact]
        out.settings[_FILTER[target]] = [*exact]
    return out


class _Settings:
    """A description in progress."""

    def __init__(self, target: Target, connect: McpConnect) -> None:
        self.out = ExportedServer()
        self._target: Target = target
        self._connect = connect

    def local(self) -> dict[str, JsonValue]:
        program, arguments = split_command(self._connect.target, "`target`")
        settings: dict[str, JsonValue] = {
            **_LOCAL.get(self._target, {}),
            "command": self._text("command", program),
            "args": [self._text("args", one) for one in arguments],
        }
        env = dict(self._connect.env or {})
        if self._target == "codex":
            passed = [name for name, value in env.items() if _variable(value) == name]
            if passed:
                settings["env_vars"] = [*passed]
            env = {name: value for name, value in env.items() if name not in passed}
        if env:
            settings["env"] = {name: self._text("env", value) for name, value in env.items()}
        return settings

    def remote(self) -> dict[str, JsonValue]:
        headers = dict(self._connect.headers or {})
        settings: dict[str, JsonValue] = {
            **_REMOTE.get(self._target, {}),
            "url": self._text("url", self._connect.target),
        }
        if self._target == "codex":
            settings |= self._codex_headers(headers)
        elif headers:
            settings["headers"] = {
                name: self._text("headers", value) for name, value in headers.items()
            }
        return {"remote": settings} if self._target == "docker-agent" else settings

    def _codex_headers(self, headers: Mapping[str, str]) -> dict[str, JsonValue]:
        settings: dict[str, JsonValue] = {}
        plain: dict[str, JsonValue] = {}
        variables: dict[str, JsonValue] = {}
        for name, value in headers.items():
            bearer = _BEARER.fullmatch(value) if name.lower() == "authorization" else None
            variable = _variable(value)
            if bearer is not None:
                settings["bearer_token_env_var"] = bearer[1]
            elif variable is not None:
                variables[name] = variable
            else:
                plain[name] = self._text("headers", value)
        if plain:
            settings["http_headers"] = plain
        if variables:
            settings["env_http_headers"] = variables
        return settings

    def _text(self, place: str, text: str) -> str:
        """Write the variables of a text as the tool does; record those it does not replace."""
        form = _REPLACED.get(self._target, {}).get(place)

        def written(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if form is not None and not default:
                return form % name
            if form == "${%s}":
                return form % f"{name}:-{default}"
            if match[0] not in self.out.kept:
                self.out.kept.append(match[0])
            return match[0]

        return _VARIABLE.sub(written, text)


def _variable(value: str) -> str | None:
    """Return the variable that a value is, without a default."""
    found = _VARIABLE.fullmatch(value)
    return found[1] if found is not None and not found[2] else None


def tool_name(target: Target, server: str, pattern: str) -> str | None:
    """Return how a tool names tools of a server.

    Args:
        target: The tool.
        server: The server's name.
        pattern: Which of its tools, with `*`, `?` and `[]`.

    Returns:
        The name, or None where the tool has no name for such a pattern.
    """
    whole = pattern == "*"
    if target == "opencode":
        return None if "[" in pattern else f"{_NOT_CLAUDE.sub('_', server)}_{pattern}"
    if not whole and _WILD & set(pattern):
        return None
    if target == "claude":
        name = f"mcp__{_NOT_CLAUDE.sub('_', server)}"
        return name if whole else f"{name}__{_NOT_CLAUDE.sub('_', pattern)}"
    if target == "copilot":
        return f"{server}/{pattern}"
    if whole:  # what precedes the first `_` is taken for the name of the server
        return None if "_" in server else f"mcp_{server}_*"
    return f"mcp_{server}_{pattern}" if _GEMINI.fullmatch(pattern) else None
