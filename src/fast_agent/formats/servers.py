"""MCP servers as other tools describe them, read from agents and files of servers, and written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fast_agent.config.server import is_url, split_command
from fast_agent.diagnostics import rules
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.cards.agent_config import McpConnect
    from fast_agent.formats.foreign import Fields, ForeignFile
    from fast_agent.text.json_value import JsonValue

_VARIABLE = re.compile(
    r"\$\{input:([^{}]+)\}"
    r"|\$\{(?:env[:.])?([A-Za-z_]\w*)(?::-?([^{}]*))?\}"
    r"|\{env:([A-Za-z_]\w*)\}"
    r"|\$\{\{\s*(?:secrets|env)\.([A-Za-z_]\w*)\s*\}\}"
)
_BARE = re.compile(r"\$([A-Z_][A-Z0-9_]*)")
_SECRET = re.compile(r"token|key|secret|passw|auth|credential", re.IGNORECASE)
_MIN_SECRET = 8
_NAME = re.compile(r"\W+")

_KNOWN: Final[Mapping[str, tuple[str, str | None]]] = {
    "timeout": ("a time limit", "set `read_timeout_seconds` of the server in the configuration"),
    "startup_timeout_sec": ("a time limit", "set `connect_timeout_seconds` of the server"),
    "startup_timeout_ms": ("a time limit", "set `connect_timeout_seconds` of the server"),
    "tool_timeout_sec": ("a time limit", "set `call_timeout_seconds` of the server"),
    "trust": ("it spares questions", "`fast-agent trust` decides what found servers may do"),
    "alwaysAllow": ("it spares questions", "leave the tools out of `confirm`"),
    "autoApprove": ("it spares questions", "leave the tools out of `confirm`"),
    "oauth": ("a login", "run `fast-agent auth`, or send a token in `headers`"),
    "authProviderType": ("a login", "send a token in `headers`"),
    "auth": ("a login", "run `fast-agent auth`, or send a token in `headers`"),
    **dict.fromkeys(
        ("excludeTools", "exclude_tools", "disabled_tools"),
        ("it denies tools", "write `tools: {SERVER: [...]}` with those allowed"),
    ),
    "description": ("text about it", "keep it as a comment"),
    "version": ("a version", "name it in the command"),
    "gallery": ("where the editor found it", None),
    "dev": ("it helps to develop the server", None),
    "envFile": ("a file of variables", "export them before, or write `env`"),
    "sandbox": ("a sandbox of the editor", None),
    "instruction": ("text for the model", "say it in the instruction"),
    "config": ("settings of a catalogue's server", "give them in `env`"),
    "defer": ("it loads tools late", None),
    "required": ("it must start", None),
}


@dataclass(slots=True)
class Server:
    """One MCP server.

    Args:
        name: Its name, as the configuration may have it.
        settings: What stands under `mcp.servers.NAME` in the configuration.
        tools: The tools that may be used; None for all of them.
    """

    name: str
    settings: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    tools: list[str] | None = None

    def connect(self) -> dict[str, JsonValue]:
        """Return the item of `mcp_connect` that connects to it."""
        settings = self.settings
        if "url" in settings:
            entry: dict[str, JsonValue] = {"target": settings["url"], "name": self.name}
            if settings.get("headers"):
                entry["headers"] = settings["headers"]
            return entry
        arguments = settings.get("args")
        words = [str(settings["command"])]
        words += [str(word) for word in arguments] if isinstance(arguments, list) else []
        entry = {"target": " ".join(map(_word, words)), "name": self.name}
        if settings.get("env"):
            entry["env"] = settings["env"]
        return entry


def _word(word: str) -> str:
    """Quote a word of a command line; variables alone need no quotes."""
    plain = _OWN_VARIABLE.sub("x", word)
    return word if shlex.quote(plain) == plain else shlex.quote(word)


def server_name(name: str) -> str:
    """Return a server's name as the configuration may have it."""
    text = re.sub(r"_{2,}", "_", re.sub(r"[^\w.-]+", "-", name.strip())).strip("-_.")
    return text or "server"


def read_server(name: str, fields: Fields) -> Server | None:
    """Read one server; report what of it goes nowhere.

    Args:
        name: Its name there.
        fields: Its fields, which are closed after this.

    Returns:
        The server; None where it names neither a command nor an address.
    """
    server = Server(server_name(name))
    kinds = (fields.text("type"), fields.text("transport"))
    remote = fields.below("remote") if fields.has("remote") else None
    _read_command(server, fields)
    where = remote or fields
    _read_address(server, where)
    if remote is not None:
        remote.text("transport_type")
        remote.none_of(_KNOWN)
        remote.close("a remote MCP server")
    if "sse" in kinds and "url" in server.settings:
        server.settings["transport"] = "sse"
    for name_of_tools in ("tools", "includeTools", "include_tools", "enabled_tools"):
        tools = fields.words(name_of_tools) if fields.has(name_of_tools) else None
        if tools is not None and "*" not in tools:
            server.tools = tools
    enabled = fields.flag("enabled") if fields.has("enabled") else None
    if enabled is False or (fields.has("disabled") and fields.flag("disabled")):
        server.settings["enabled"] = False
    fields.lost(
        "ref",
        "`ref` names a server of a catalogue, which is not looked up",
        "write the `command` or the `url` of the server in its place",
    )
    fields.none_of(_KNOWN)
    fields.close("an MCP server")
    return server if "command" in server.settings or "url" in server.settings else None


def _read_command(server: Server, fields: Fields) -> None:
    command = fields.values.get("command")
    if isinstance(command, list | tuple):
        words = fields.words("command") or []
        if words:
            server.settings["command"] = variables(words[0])
            server.settings["args"] = [variables(word) for word in words[1:]]
    elif (text := fields.text("command")) is not None:
        server.settings["command"] = variables(text)
    arguments = fields.values.get("args")
    if isinstance(arguments, list | tuple):
        fields.take("args")
        server.settings["args"] = [variables(str(word)) for word in arguments]
    elif arguments is not None:
        fields.words("args")
    env = _environment(fields)
    if env:
        server.settings["env"] = env
    cwd = fields.text("cwd") if fields.has("cwd") else None
    if cwd is None and fields.has("working_dir"):
        cwd = fields.text("working_dir")
    if cwd is not None:
        server.settings["cwd"] = variables(cwd)


def _environment(fields: Fields) -> dict[str, JsonValue]:
    env = {**_texts(fields, "env"), **_texts(fields, "environment")}
    passed = fields.words("env_vars") if fields.has("env_vars") else None
    return {**env, **{name: f"${{{_NAME.sub('_', name)}:}}" for name in passed or ()}}


def _read_address(server: Server, fields: Fields) -> None:
    for name in ("httpUrl", "http_url", "url", "serverUrl"):
        url = fields.text(name)
        if url is not None and "url" not in server.settings:
            server.settings["url"] = variables(url)
    headers: dict[str, JsonValue] = {}
    for name in ("headers", "http_headers", "requestInit"):
        headers |= _texts(fields, name)
    token = fields.text("bearer_token_env_var")
    if token is not None:
        headers["Authorization"] = f"Bearer ${{{token}:}}"
    if fields.has("env_http_headers"):
        for key, variable in _texts(fields, "env_http_headers").items():
            headers[key] = f"${{{_NAME.sub('_', str(variable))}:}}"
    if headers:
        server.settings["headers"] = headers
    if "url" in server.settings:
        for name in ("command", "args", "env", "cwd"):
            server.settings.pop(name, None)


def _texts(fields: Fields, name: str) -> dict[str, JsonValue]:
    inner = fields.below(name) if fields.has(name) else None
    if inner is None:
        return {}
    found: dict[str, JsonValue] = {}
    for key, value in inner.values.items():
        text = inner.text(key) if not isinstance(value, bool) else str(inner.take(key)).lower()
        if text is None:
            found[key] = ""
            continue
        kept = variables(text)
        literal = kept == text and _SECRET.search(key) and len(text) >= _MIN_SECRET
        if literal:
            variable = _NAME.sub("_", key).upper()
            kept = f"${{{variable}:}}"
            inner.adapted(
                key,
                f"the value of `{key}` looks secret and was not copied",
                f"set the environment variable `{variable}`",
            )
        found[key] = kept
    inner.close("it")
    return found


def variables(text: str) -> str:
    """Write variables of other tools as `${NAME:}`, which is empty where it is not set."""

    def written(match: re.Match[str]) -> str:
        name = next((match[n] for n in (1, 2, 4, 5) if match[n] is not None), "")
        default: str = match[3] or ""
        return f"${{{_NAME.sub('_', name).upper() if match[1] else name}:{default}}}"

    changed = _VARIABLE.sub(written, text)
    if changed == text:
        return _BARE.sub(lambda match: f"${{{match[1]}:}}", text)
    return changed


_GROUPS: Final = ("mcpServers", "servers", "mcp", "mcp_servers")
_OPENCODE: Final = {
    "permission": ("what all agents may do", "write `files`, `shell` and `confirm` in the cards"),
    "tools": ("tools of all agents", "write `files`, `shell` and `fetch` in the cards"),
    "instructions": ("files of instructions", "write `{{file:PATH}}` in the body of a card"),
    "model": ("the model of all agents", "write `default_model` in the configuration"),
    "small_model": ("a model for titles", None),
    "provider": ("addresses of providers", "write `PROVIDER.base_url` in the configuration"),
    "command": ("short names of messages", "keep them as files for `go --prompt-file`"),
    "default_agent": ("the agent a conversation starts with", "write `default: true` in its card"),
}
_PROGRAM: Final = ("a setting of that tool", None)


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

_OWN_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::([^{}]*))?\}")
_BEARER = re.compile(r"Bearer \$\{([A-Za-z_]\w*):?\}")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")
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

        return _OWN_VARIABLE.sub(written, text)


def _variable(value: str) -> str | None:
    """Return the variable that a value is, without a default."""
    found = _OWN_VARIABLE.fullmatch(value)
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
        return None if "[" in pattern else f"{_NOT_PLAIN.sub('_', server)}_{pattern}"
    if not whole and _WILD & set(pattern):
        return None
    if target == "claude":
        name = f"mcp__{_NOT_PLAIN.sub('_', server)}"
        return name if whole else f"{name}__{_NOT_PLAIN.sub('_', pattern)}"
    if target == "copilot":
        return f"{server}/{pattern}"
    if whole:  # what precedes the first `_` is taken for the name of the server
        return None if "_" in server else f"mcp_{server}_*"
    return f"mcp_{server}_{pattern}" if _GEMINI.fullmatch(pattern) else None
