"""Settings as the nearest peer spells them: read as ours, or named in a note.

A file is translated before anything reads it, so that trust, the reader and diagnostics see one
spelling. Keys that are known nowhere stay, and are errors as in any file.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from fast_agent.config.providers import PROVIDERS
from fast_agent.config.server import is_url
from fast_agent.diagnostics.rules import (
    UNSUPPORTED_SETTING,
    UNUSED_SETTING,
    WRONG_CONFIG_TYPE,
    WRONG_SERVER,
)
from fast_agent.schema.kinds import AnyOf, ListOf, MapOf, Record
from fast_agent.text.json_value import as_list, as_object
from fast_agent.text.yaml_document import YamlDocument

if TYPE_CHECKING:
    from fast_agent.config.layer import FileLayer
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Kind
    from fast_agent.text.json_value import JsonValue, Keys

Values: TypeAlias = "dict[str, JsonValue]"

DISPLAY_KEYS: Final[Mapping[str, str]] = {
    "logger": "how fast-agent-mcp shows its work; `--quiet` and `/markdown` choose here",
    "tool_display": "how fast-agent-mcp shows calls of tools",
    "tui": "how fast-agent-mcp draws its menus",
    "execution_engine": "how fast-agent-mcp runs; there is one way here",
    "git_aware": "what fast-agent-mcp writes into exports",
    "session_history_window": "how many sessions fast-agent-mcp keeps; all are kept here",
    "cards": "where fast-agent-mcp searches for cards to install",
}
"""Sections that change what fast-agent-mcp shows or how it works inside, and nothing here."""

UNSUPPORTED_KEYS: Final[Mapping[str, str]] = {
    "default_environment": "start `fast-agent` where commands are to run",
    "environments": "start `fast-agent` where commands are to run, in a container for example",
    "session_history": "start with `--no-session` to keep no session",
    "model_source": "write `default_model`",
    "cli_model_override": "start with `--model`",
    "otel": "set the variables `OTEL_…` of OpenTelemetry",
    "plugins": "write `tool_hooks` or `function_tools` in cards",
    "commands": "keep such texts as skills, which `/NAME` calls",
    "ptc": "write `function_tools` with Python functions that call others",
    "harness_app": "start your program with `FastAgent` in Python",
    "copilot": "name a model of another provider",
    "responses": "write `openai`, whose models are asked the same way",
    "openresponses": "write `generic` with its `base_url`",
    "codexresponses": "write `openai` with a key",
    "zai": "write `generic` with its `base_url`, or use the model `glm`",
    "moonshot": "write `generic` with its `base_url`, or use the model `kimi`",
    "metaai": "write `generic` with its `base_url`",
    "tensorzero": "write `generic` with its `base_url`",
    "aliyun": "write `generic` with its `base_url`, or use the model `qwen`",
    "hf": "write `generic` with its `base_url`",
}
"""Sections of fast-agent-mcp that do nothing here, with what does the same."""

_PROVIDER: Final[Mapping[str, str]] = {
    "default_model": "write `default_model: PROVIDER.NAME` at the top",
    "reasoning": "write the level behind the model: `NAME.high`",
    "reasoning_effort": "write the level behind the model: `NAME.high`",
    "reasoning_summary": "reasoning is shown as the provider sends it",
    "text_verbosity": "say in the instruction how long answers are to be",
    "cache_mode": "prompts are cached where the provider can",
    "cache_ttl": "prompts are cached where the provider can",
    "cache_diagnostics": "`/usage` shows what was read from the cache",
    "task_budget": "write `request_params: {usage_limits: …}`",
    "structured_output_mode": "the strictest form a provider has is used",
    "native_compaction": "write `compaction: {native: true}` or `false`",
    "default_headers": "write `headers`",
    "service_tier": "write `request_params: {extra_body: {service_tier: …}}`",
    "transport": "answers are streamed as the provider can",
    "vertex_ai": "set the variables of Google's SDK",
    "web_search": "add an MCP server that searches",
    "web_fetch": "write `fetch: true` in the card",
    "x_search": "add an MCP server that searches",
    "stream_tool_calls": "tool calls are shown when they are complete",
    "image_upload_mode": "images are sent inside requests",
    "image_upload_ttl_seconds": "images are sent inside requests",
    "resource_name": "write `base_url: https://NAME.openai.azure.com`",
    "azure_deployment": "write `model: azure.DEPLOYMENT`",
    "api_version": "set the variable `OPENAI_API_VERSION`",
    "region": "set the variable `AWS_REGION`",
    "profile": "set the variable `AWS_PROFILE`",
    "default_provider": "write it behind the model's name",
}
_SERVER_DISPLAY: Final[Mapping[str, str]] = {
    "description": "text for people",
    "ping_interval_seconds": "how often the connection is tried",
    "max_missed_pings": "how often the connection is tried",
    "http_read_timeout_seconds": "a time limit of the transport; `read_timeout_seconds` bounds it",
    "read_transport_sse_timeout_seconds": "a time limit of the transport;"
    " `read_timeout_seconds` bounds it",
    "reconnect_on_disconnect": "lost connections are always made again",
    "defer_loading": "when tools are described to the model",
}
_SERVER_UNSUPPORTED: Final[Mapping[str, str]] = {
    "management": "set `command` or `url` for the server",
    "connector_id": "set `command` or `url` for the server",
    "auth": "authorize with `fast-agent auth login SERVER`, or send a token in `headers`",
    "implementation": "servers receive the name of this program",
    "name": "a server is called as its key is",
}
_MCP_DISPLAY: Final[Mapping[str, str]] = {
    "diagnostics": "how fast-agent-mcp draws connections",
    "reconnect_on_disconnect": "lost connections are always made again",
}
_COMPACTION: Final[Mapping[str, str]] = {
    "keep_turns": "as many of the last messages are kept as fit",
    "strategy": "the agent's own model, or `agent`, writes the summary",
    "prompt": "name an `agent` that writes the summary as you like it",
}
_TERMINAL: Final[Mapping[str, str]] = {
    "completion_menu_reserved_lines": "how fast-agent-mcp draws its menus",
}
_SKILLS: Final[Mapping[str, str]] = {
    "marketplace_url": "where fast-agent-mcp searches for skills to install",
    "marketplace_urls": "where fast-agent-mcp searches for skills to install",
}
_SHELL: Final[Mapping[str, str]] = {
    "timeout_seconds": "timeout_seconds",
    "output_byte_limit": "max_output_bytes",
}
_PROTOCOLS: Final[Mapping[str, str]] = {"modern": "2026-07-28"}
_RENAMED_SERVER_KEYS: Final[Mapping[str, str]] = {
    "protocol_mode": "protocol",
    "http_timeout_seconds": "connect_timeout_seconds",
}


def translated(layer: FileLayer, table: Record) -> tuple[FileLayer, tuple[Diagnostic, ...]]:
    """Read the settings of the peer as ours.

    Args:
        layer: A configuration file.
        table: The settings there are.

    Returns:
        The file as if it were written with our keys, and a note for each setting that does nothing
        here or could not be read.
    """
    work = _Translation(layer, table)
    work.run()
    document = layer.document
    return (
        replace(
            layer,
            document=YamlDocument(document.text, document.first_line, work.values),
            written=work.written,
        ),
        tuple(work.notes),
    )


class _Translation:
    """The values of one file on their way from one spelling to the other."""

    def __init__(self, layer: FileLayer, table: Record) -> None:
        self._layer = layer
        self._table = table
        self._own = {entry.name: entry for entry in table.entries}
        self.values = cast("Values", _copied(layer.document.value))
        self.written: dict[Keys, Keys] = {}
        self.notes: list[Diagnostic] = []

    def run(self) -> None:
        values = self.values
        self._drop(values, (), DISPLAY_KEYS, UNUSED_SETTING)
        self._drop(values, (), UNSUPPORTED_KEYS, UNSUPPORTED_SETTING)
        for name in PROVIDERS:
            self._move(values, f"{name}_api_key", (), name, "api_key")
            section = values.get(name)
            if isinstance(section, dict):
                self._provider(section, name)
        self._mcp()
        self._references()
        self._compaction()
        self._move(values, "llm_retries", (), "request_params", "retries")
        self._shell()
        terminal = values.get("tui")
        if isinstance(terminal, dict):
            self._drop(terminal, ("tui",), _TERMINAL, UNUSED_SETTING)
        skills = values.get("skills")
        if isinstance(skills, dict):
            self._drop(skills, ("skills",), _SKILLS, UNUSED_SETTING)

    def _note(self, rule: Rule, keys: Keys, message: str, hint: str | None = None) -> None:
        self.notes.append(self._layer.place(keys, key=True).problem(rule, message, hint))

    def _drop(self, values: Values, at: Keys, table: Mapping[str, str], rule: Rule) -> None:
        """Take out the keys of a table that are not ours, with a note for each that has a value."""
        own = _names_at(self._table, at)
        for key in [key for key in values if key in table and key not in own]:
            value = values.pop(key)
            if value is None:
                continue
            shown = ".".join(map(str, (*at, key)))
            if rule is UNUSED_SETTING:
                self._note(rule, (*at, key), f"`{shown}` changes nothing here ({table[key]})")
            else:
                self._note(rule, (*at, key), f"`{shown}` has no effect here", table[key])

    def _move(self, values: Values, key: str, at: Keys, section: str, name: str) -> None:
        """Move a value to another section, unless the section has one already."""
        if values.get(key) is None:
            values.pop(key, None)
            return
        target = self.values.setdefault(section, {})
        if isinstance(target, dict):
            value = values.pop(key)
            target.setdefault(name, value)
            self.written[section, name] = (*at, key)

    def _provider(self, section: Values, name: str) -> None:
        if "headers" in _names_at(self._table, (name,)) and "default_headers" in section:
            section.setdefault("headers", section.pop("default_headers"))
            self.written[name, "headers"] = (name, "default_headers")
        self._drop(section, (name,), _PROVIDER, UNSUPPORTED_SETTING)

    def _references(self) -> None:
        """Read `model_references: {system: {fast: haiku}}` as an alias `$system.fast`."""
        groups = self.values.get("model_references")
        if not isinstance(groups, dict) or "model_references" in self._own:
            return
        aliases = self.values.setdefault("model_aliases", {})
        if not isinstance(aliases, dict):
            return
        del self.values["model_references"]
        for group, names in groups.items():
            if not isinstance(names, dict):
                message = f"`model_references.{group}` is not a table of names and models"
                hint = f"write `model_references: {{{group}: {{default: sonnet}}}}`"
                self._note(WRONG_CONFIG_TYPE, ("model_references", group), message, hint)
            for name, model in as_object(names).items():
                aliases.setdefault(f"${group}.{name}", model)
                place = ("model_references", group, name)
                self.written["model_aliases", f"${group}.{name}"] = place

    def _compaction(self) -> None:
        section = self.values.get("compaction")
        if not isinstance(section, dict):
            return
        at: Keys = ("compaction",)
        self._drop(section, at, _COMPACTION, UNUSED_SETTING)
        if section.get("threshold") is not None:
            section.setdefault("share", section["threshold"])
            self.written["compaction", "share"] = ("compaction", "threshold")
        section.pop("threshold", None)
        on = section.pop("auto", True)
        if on is False:
            self.values["compaction"] = False
        elif not section:
            del self.values["compaction"]

    def _shell(self) -> None:
        section = self.values.get("shell_execution")
        if not isinstance(section, dict):
            self.values.pop("shell_execution", None)
            return
        for key, name in _SHELL.items():
            self._move(section, key, ("shell_execution",), "shell", name)
        for key in section:
            if section[key] is not None:
                message = f"`shell_execution.{key}` has no effect here"
                self._note(UNUSED_SETTING, ("shell_execution", key), message)
        del self.values["shell_execution"]

    def _mcp(self) -> None:
        mcp = self.values.get("mcp")
        if not isinstance(mcp, dict):
            return
        self._drop(mcp, ("mcp",), _MCP_DISPLAY, UNUSED_SETTING)
        defaults = mcp.pop("defaults", None)
        client = as_object(mcp.pop("client", None))
        given: Values = {}
        if isinstance(defaults, dict):
            self._drop(defaults, ("mcp", "defaults"), _MCP_DISPLAY, UNUSED_SETTING)
            for key in ("protocol_mode", "include_instructions"):
                given[key] = defaults.pop(key, None)
            for key in defaults:
                place = ("mcp", "defaults", key)
                self._note(UNSUPPORTED_SETTING, place, f"`mcp.defaults.{key}` has no effect here")
        if client.get("auto_sampling") is False:
            given["sampling"] = False
        servers = mcp.get("servers")
        for name, server in servers.items() if isinstance(servers, dict) else ():
            if isinstance(server, dict):
                self._server(server, name, given)

    def _server(self, server: Values, name: str, defaults: Values) -> None:
        at: Keys = ("mcp", "servers", name)
        for key, value in defaults.items():
            if value is not None and not {key, _RENAMED_SERVER_KEYS.get(key, key)} & server.keys():
                server[key] = value
        for key, ours in _RENAMED_SERVER_KEYS.items():
            if key in server and ours not in server:
                value = server.pop(key)
                server[ours] = _PROTOCOLS.get(value, value) if isinstance(value, str) else value
                self.written[(*at, ours)] = (*at, key)
        if server.get("name") == name:
            del server["name"]
        self._login(server, at)
        self._drop(server, at, _SERVER_DISPLAY, UNUSED_SETTING)
        self._drop(server, at, _SERVER_UNSUPPORTED, UNSUPPORTED_SETTING)
        elicitation = server.get("elicitation")
        if isinstance(elicitation, dict) and elicitation.get("mode") == "auto-cancel":
            elicitation["mode"] = "none"
        for index, root in enumerate(as_list(server.get("roots"))):
            if isinstance(root, dict):
                alias = {"server_uri_alias": "mount the directory where the server expects it"}
                self._drop(root, (*at, "roots", index), alias, UNSUPPORTED_SETTING)
        self._target(server, at)

    def _login(self, server: Values, at: Keys) -> None:
        """Read `access_token` as a header, and `auth` that asks for no login as nothing."""
        auth = as_object(server.get("auth"))
        if auth.get("oauth") is False and len(auth) == 1:
            del server["auth"]
        token = server.pop("access_token", None)
        headers = server.setdefault("headers", {}) if isinstance(token, str) else None
        if isinstance(headers, dict):
            headers.setdefault("Authorization", f"Bearer {token}")
            self.written[(*at, "headers", "Authorization")] = (*at, "access_token")

    def _target(self, server: Values, at: Keys) -> None:
        """Read `target`, an address or a command line, as `url`, or `command` and `args`."""
        target = server.get("target")
        if not isinstance(target, str) or not target.strip():
            return
        if {"command", "url"} & server.keys():
            self._note(
                WRONG_SERVER,
                (*at, "target"),
                f"the server `{at[-1]}` has a `target` and also a `command` or `url`",
                "keep one of them",
            )
            del server["target"]
            return
        if is_url(target):
            server["url"] = target.strip()
            self.written[(*at, "url")] = (*at, "target")
        else:
            try:
                words = shlex.split(target)
            except ValueError as error:
                message = f"the `target` of the server `{at[-1]}` is not a command line: {error}"
                self._note(WRONG_SERVER, (*at, "target"), message.lower(), "check its quotes")
                words = target.split()
            if words[0].startswith("@"):  # a package of npm
                words = ["npx", "-y", *words]
            server["command"] = words[0]
            server["args"] = [*words[1:], *as_list(server.get("args"))]
            for key in ("command", "args"):
                self.written[(*at, key)] = (*at, "target")
        del server["target"]


def _names_at(kind: Kind, at: Keys) -> frozenset[str]:
    """Return the names of the settings at a place; empty where there is none."""
    for key in at:
        if isinstance(kind, AnyOf):
            kind = next((one for one in kind.kinds if isinstance(one, Record | MapOf)), kind)
        if isinstance(kind, Record):
            entry = next((one for one in kind.entries if one.name == key), None)
            if entry is None:
                return frozenset()
            kind = entry.kind
        elif isinstance(kind, MapOf):
            kind = kind.value
        elif isinstance(kind, ListOf):
            kind = kind.item
    if isinstance(kind, AnyOf):
        kind = next((one for one in kind.kinds if isinstance(one, Record)), kind)
    return frozenset(one.name for one in kind.entries) if isinstance(kind, Record) else frozenset()


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(one) for one in value]
    return value
