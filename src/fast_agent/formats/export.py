"""Cards written as agents of other tools, with everything that does not fit reported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, cast

from fast_agent.cards.agent_config import NO_PARAMS
from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.placeholder import Placeholder, parse_template
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import ModelError
from fast_agent.formats.readers.crewai import TEMPLATES, crew_parts
from fast_agent.formats.servers import (
    SERVERS_FIELD,
    SERVERS_FILE,
    Target,
    export_server,
    tool_name,
)
from fast_agent.mcp.server import connect_name
from fast_agent.models.spec import parse_model_spec
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.formats.tools import Ability
    from fast_agent.models.spec import ModelSpec
    from fast_agent.text.json_value import JsonValue

DIRECTORIES: Final[Mapping[Target, str]] = {
    "claude": ".claude/agents",
    "copilot": ".github/agents",
    "opencode": ".opencode/agent",
    "gemini": ".gemini/agents",
    "codex": ".codex/agents",
    "docker-agent": ".",
    "crewai": ".",
}
"""Where each tool searches for agents."""

_TOOLS: Final[Mapping[Target, Mapping[Ability, tuple[str, ...]]]] = {
    "claude": {
        "read": ("Read", "Grep", "Glob"),
        "write": ("Read", "Grep", "Glob", "Edit", "Write"),
        "shell": ("Bash",),
        "fetch": ("WebFetch",),
        "ask": ("AskUserQuestion",),
    },
    "copilot": {
        "read": ("read", "search"),
        "write": ("read", "search", "edit"),
        "shell": ("execute",),
        "fetch": ("web/fetch",),
        "ask": ("vscode/askQuestions",),
    },
    "opencode": {
        "read": ("read", "grep", "glob", "list"),
        "write": ("read", "grep", "glob", "list", "edit", "write"),
        "shell": ("bash",),
        "fetch": ("webfetch",),
        "ask": ("question",),
    },
    "gemini": {
        "read": ("read_file", "grep_search", "glob", "list_directory"),
        "write": ("read_file", "grep_search", "glob", "list_directory", "write_file", "replace"),
        "shell": ("run_shell_command",),
        "fetch": ("web_fetch",),
        "ask": ("ask_user",),
    },
}
_TOOLSETS: Final[Mapping[Ability, str]] = {
    "shell": "shell",
    "fetch": "fetch",
    "ask": "user_prompt",
}
_ONE_PROVIDER: Final[Mapping[Target, str]] = {
    "claude": "anthropic",
    "gemini": "google",
    "codex": "openai",
}
_PROVIDERS: Final[Mapping[Target, Mapping[str, str]]] = {
    "opencode": {"bedrock": "amazon-bedrock", "hf": "huggingface", "vertex": "google-vertex"},
    "docker-agent": {"bedrock": "amazon-bedrock"},
    "crewai": {"google": "gemini", "hf": "huggingface", "vertex": "vertex_ai"},
}
"""Providers that other tools name otherwise."""
_EFFORT: Final[Mapping[Target, str]] = {
    "claude": "effort",
    "copilot": "reasoning-effort",
    "opencode": "reasoningEffort",
    "codex": "model_reasoning_effort",
}
_TURNS: Final[Mapping[Target, str]] = {
    "claude": "maxTurns",
    "opencode": "steps",
    "gemini": "max_turns",
    "docker-agent": "max_iterations",
    "crewai": "max_iter",
}
_SAMPLING: Final[Mapping[Target, tuple[str, ...]]] = {
    "opencode": ("temperature", "top_p"),
    "gemini": ("temperature",),
}
_MODEL_LISTS: Final = frozenset[Target]({"copilot"})
"""Tools that try several models in order, as cards do."""
_ONE_FILE: Final[Mapping[Target, str]] = {"docker-agent": "team.yaml", "crewai": "agents.yaml"}
"""Tools that keep all agents in one file."""
_PROJECT: Final = "{{projectInstructions}}"
_CLAUDE_VERSION = re.compile(r"(?<=^claude-)([a-z]+-\d+)-(\d+)$")
_NOT_SLUG = re.compile(r"[^a-z0-9_-]+")


@dataclass(slots=True)
class ExportedAgent:
    """An agent written for another tool.

    Args:
        card: The card.
        file_name: Its file; empty where it is part of a team's file.
        text: The text of its file.
        values: Its fields.
        diagnostics: What of the card does not fit.
    """

    card: Card
    file_name: str = ""
    text: str = ""
    values: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


def export_cards(cards: Sequence[Card], target: Target) -> tuple[dict[str, str], list[Diagnostic]]:
    """Write cards as agents of another tool.

    Args:
        cards: The cards of a set.
        target: The tool.

    Returns:
        The texts by file name, and everything that did not fit, card by card.
    """
    agents = [_Export(card, target).run() for card in cards]
    written = [one for one in agents if one.values]
    found = [note for one in agents for note in one.diagnostics]
    if target not in _ONE_FILE:
        return {one.file_name: one.text for one in written}, found
    if not written:
        return {}, found
    first = next((one for one in written if one.card.config.default), written[0])
    ordered = [first, *(one for one in written if one is not first)]
    team: dict[str, JsonValue] = {one.card.config.name: one.values for one in ordered}
    file = {"agents": team} if target == "docker-agent" else team
    return {_ONE_FILE[target]: write_yaml(file)}, found


class _Export:
    """One card in progress; a field that is not recorded in `done` is reported at the end."""

    def __init__(self, card: Card, target: Target) -> None:
        self._card = card
        self._target: Target = target
        self._config: AgentConfig = card.config
        self._done = {"type", "name", "instruction"}
        self._out = ExportedAgent(card)
        self._values = self._out.values
        self._abilities: list[Ability] = []

    def run(self) -> ExportedAgent:
        config, target = self._config, self._target
        if config.type != "agent":
            self._lost("type", f"a card of type `{config.type}` has no counterpart there")
            return self._out
        name = config.name
        if target in {"gemini", "codex"}:
            name = _slug(config.name)
        if name != config.name:
            self._note(rules.ADAPTED_FIELD, "name", f"`{config.name}` is called `{name}` there")
        if target not in {"opencode", *_ONE_FILE}:
            self._values["name"] = name
        self._values["description"] = config.description or f"The agent {config.name}."
        self._done.add("description")
        self._roles()
        self._model()
        self._params()
        self._abilities_of()
        self._tools()
        self._report()
        body = self._instruction()
        self._finish(name, body)
        return self._out

    def _roles(self) -> None:
        config, target, values = self._config, self._target, self._values
        if target == "opencode":
            values["mode"] = (
                "subagent" if config.tool_only else "primary" if config.default else "all"
            )
            self._done |= {"tool_only", "default"}
        elif target == "copilot" and config.tool_only:
            values["user-invocable"] = False
            self._done.add("tool_only")
        elif target in _ONE_FILE:
            self._done.add("default")

    def _model(self) -> None:
        config, target = self._config, self._target
        models = (config.model,) if isinstance(config.model, str) else config.model or ()
        if not models:
            return
        self._done.add("model")
        if len(models) > 1 and target not in _MODEL_LISTS:
            self._lost("model", f"only the first of `{config.model_text}` is named there")
            models = models[:1]
        named = [one for one in map(self._one_model, models) if one is not None]
        if not named:
            return
        self._values["model"] = named[0][0] if len(named) == 1 else [name for name, _ in named]
        field, efforts = _EFFORT.get(target), list(dict.fromkeys(effort for _, effort in named))
        if field is not None and len(efforts) == 1 and efforts[0] is not None:
            self._values[field] = efforts[0]
            return
        for effort in efforts:
            if effort is not None:
                self._lost("model", f"the effort `{effort}` cannot be named there")

    def _one_model(self, model: str) -> tuple[str, str | None] | None:
        """Return the name and the effort of a model, or None with a diagnostic."""
        try:
            spec = parse_model_spec(model)
        except ModelError:
            self._lost("model", f"the model `{model}` is not known here")
            return None
        name = self._model_name(spec)
        if name is None:
            self._lost("model", f"the model `{model}` cannot be named there")
            return None
        return name, spec.effort

    def _model_name(self, spec: ModelSpec) -> str | None:
        if not spec.is_cloud:
            return None
        only = _ONE_PROVIDER.get(self._target)
        if only is not None:
            return spec.name if spec.provider == only else None
        if self._target != "copilot":
            named = _PROVIDERS.get(self._target, {}).get(spec.provider, spec.provider)
            return f"{named}/{spec.name}"
        try:
            if parse_model_spec(spec.name).provider != spec.provider:
                return None
        except ModelError:
            return None
        # Copilot writes `claude-sonnet-4.5` for what Anthropic calls `claude-sonnet-4-5`.
        return _CLAUDE_VERSION.sub(r"\1.\2", spec.name)

    def _params(self) -> None:
        params = self._config.request_params
        if params is None or params == NO_PARAMS:
            return
        self._done.add("request_params")
        names = {name: name for name in _SAMPLING.get(self._target, ())}
        if self._target in _TURNS:
            names["max_iterations"] = _TURNS[self._target]
        for name in (item.name for item in fields(params)):
            value = cast("JsonValue", getattr(params, name))
            if value is None:
                continue
            if name in names:
                self._values[names[name]] = value
            else:
                self._lost("request_params", f"`{name}` has no counterpart there", name)

    def _abilities_of(self) -> None:
        config = self._config
        # The fields for files and pages are younger than this module.
        files: object = getattr(config, "files", None)
        if files in {"read", "write"}:
            self._abilities.append("write" if files == "write" else "read")
        if config.shell:
            self._abilities.append("shell")
        if getattr(config, "fetch", False):
            self._abilities.append("fetch")
        if config.human_input:
            self._abilities.append("ask")
        self._done |= {"files", "shell", "fetch", "human_input"}

    def _tools(self) -> None:
        target = self._target
        if target == "codex":
            self._codex_tools()
        elif target == "docker-agent":
            self._toolsets()
        elif target == "crewai":  # tools are Python objects there
            self._done -= {"files", "shell", "fetch", "human_input"}
        else:
            self._named_tools(target)

    def _codex_tools(self) -> None:
        if "write" in self._abilities or "shell" in self._abilities:
            self._values["sandbox_mode"] = "workspace-write"
        else:
            self._values["sandbox_mode"] = "read-only"
        for ability in self._abilities:
            if ability in {"fetch", "ask"}:
                name = "fetch" if ability == "fetch" else "human_input"
                self._lost(name, f"`{name}` has no counterpart in a Codex role")
        servers = self._own_servers()
        if servers:
            self._values["mcp_servers"] = {
                _NOT_SLUG.sub("-", name): settings for name, settings in servers.items()
            }

    def _toolsets(self) -> None:
        toolsets: list[JsonValue] = []
        if "write" in self._abilities:
            toolsets.append({"type": "filesystem"})
        elif "read" in self._abilities:
            reading = ["read_file", "list_directory", "search_files_content"]
            toolsets.append({"type": "filesystem", "tools": reading})
        toolsets += [{"type": _TOOLSETS[one]} for one in self._abilities if one in _TOOLSETS]
        toolsets += [
            {"type": "mcp", "name": name, **settings}
            for name, settings in self._own_servers().items()
            if settings.get("tools") != []  # which would be all of them
        ]
        if toolsets:
            self._values["toolsets"] = toolsets
        if self._config.agents:
            self._values["sub_agents"] = [*self._config.agents]
            self._done.add("agents")

    def _named_tools(self, target: Target) -> None:
        config = self._config
        names = [name for one in self._abilities for name in _TOOLS[target][one]]
        own = self._own_servers()
        patterns = config.tools or {}
        # Gemini gives an agent every tool of its own servers, but for what they leave out.
        for server in (*config.servers, *(() if target == "gemini" else own)):
            for pattern in patterns.get(server, ("*",)):
                name = tool_name(target, server, pattern)
                if name is None:
                    field, keys = ("tools", (server,)) if server in patterns else ("servers", ())
                    self._lost(field, f"`{pattern}` of `{server}` cannot be named there", *keys)
                else:
                    names.append(name)
            self._done |= {"tools", "servers"}
        if config.servers:
            self._note(
                rules.ADAPTED_FIELD,
                "servers",
                f"define {_listed(config.servers)} in `{SERVERS_FILE[target]}`, where that tool"
                " searches for servers",
            )
        agents = config.agents or ()
        if agents:
            self._agents(target, agents, names)
        if target == "opencode":
            on: dict[str, JsonValue] = {"*": False}
            on |= dict.fromkeys(dict.fromkeys(names), True)
            self._values["tools"] = on
        else:
            self._values["tools"] = [*dict.fromkeys(names)]
        if own:
            self._values[SERVERS_FIELD[target]] = (
                [{name: settings} for name, settings in own.items()]
                if target == "claude"
                else {**own}
            )
        self._confirm()

    def _agents(self, target: Target, agents: Sequence[str], names: list[str]) -> None:
        if target == "claude":
            names.append(f"Agent({', '.join(agents)})")
        elif target == "copilot":
            names.append("agent")
            self._values["agents"] = [*agents]
        elif target == "opencode":
            rules_of: dict[str, JsonValue] = {"*": "deny"}
            self._values["permission"] = {"task": rules_of | dict.fromkeys(agents, "allow")}
        else:
            return
        self._done.add("agents")

    def _confirm(self) -> None:
        wanted = set(self._config.confirm or ())
        if self._target != "opencode" or not wanted:
            return
        permission = self._values.setdefault("permission", dict[str, "JsonValue"]())
        asked = {"execute": "bash", "fetch": "webfetch", "read_file": "read"}
        if isinstance(permission, dict):
            permission |= {asked[one]: "ask" for one in sorted(wanted & asked.keys())}
            if {"write_file", "edit_file"} <= wanted:
                permission["edit"] = "ask"
                wanted -= {"write_file", "edit_file"}
        if not wanted - asked.keys():
            self._done.add("confirm")

    def _own_servers(self) -> dict[str, dict[str, JsonValue]]:
        """Describe the servers of `mcp_connect` by their names; report what is not the same."""
        found: dict[str, dict[str, JsonValue]] = {}
        if self._target not in SERVERS_FIELD:
            return found
        patterns = self._config.tools or {}
        for one in self._config.mcp_connect:
            name = connect_name(one)
            made = export_server(self._target, one, patterns.get(name))
            if made is None:
                self._lost("mcp_connect", f"the server `{name}` has no command")
                continue
            found[name] = made.settings
            if made.kept:
                variables = _listed(made.kept)
                message = f"nothing replaces {variables} of `{name}` there; it stays as text"
                self._note(rules.LOST_FIELD, "mcp_connect", message, hint="write its value")
            for pattern in made.unnamed:
                message = f"`{pattern}` of `{name}` cannot be named there"
                self._lost("tools", message, name)
        self._done.add("mcp_connect")
        if patterns.keys() <= found.keys():
            self._done.add("tools")
        return found

    def _report(self) -> None:
        for name, item in FIELDS_OF[self._config.type].items():
            if name in self._done or item.deprecated is not None:
                continue
            value: object = getattr(self._config, name)
            if (
                value is None
                or value == {}
                or value == item.default_for(self._config.type)
                or value == ()
            ):
                continue
            self._lost(name, f"`{name}` has no counterpart there")

    def _instruction(self) -> str:
        template = parse_template(self._config.instruction or "")
        # These do not add the instructions of the project automatically.
        project = "" if self._target in _ONE_FILE else _PROJECT
        kept = [one for one in dict.fromkeys(map(str, template.placeholders)) if one != project]
        if kept:
            message = f"nothing replaces {_listed(kept)} there; it stays as text"
            self._note(rules.LOST_FIELD, "instruction", message, hint="write its value")
        parts = [
            "" if isinstance(one, Placeholder) and str(one) == project else str(one)
            for one in template.segments
        ]
        return "".join(parts).strip("\n")

    def _finish(self, name: str, body: str) -> None:
        out, values = self._out, self._values
        if self._target == "docker-agent":
            values["instruction"] = body
            return
        if self._target == "crewai":
            self._out.values = _crew_agent(name, body, values)
            return
        slug = _slug(name) if self._target != "opencode" else name.replace("/", "-")
        if self._target == "codex":
            servers = values.pop("mcp_servers", None)
            values["developer_instructions"] = body
            if servers is not None:
                values["mcp_servers"] = servers
            out.file_name, out.text = f"{slug}.toml", write_toml(values)
            return
        suffix = ".agent.md" if self._target == "copilot" else ".md"
        out.file_name = f"{slug}{suffix}"
        out.text = f"---\n{write_yaml(values)}---\n\n{body}\n"

    def _lost(self, name: str, message: str, *keys: str) -> None:
        self._note(rules.LOST_FIELD, name, message, *keys)

    def _note(
        self,
        rule: Rule,
        name: str,
        message: str,
        *keys: str,
        hint: str = "it is left out of the agent",
    ) -> None:
        span = self._card.span_of(name, *keys, key=True)
        line = None if span is None else self._card.source_line(span.start.line)
        self._out.diagnostics.append(
            Diagnostic(
                rule.code,
                message,
                self._card.path,
                span=span,
                severity=rule.severity,
                hint=None if rule is rules.ADAPTED_FIELD else hint,
                source_line=line,
            )
        )


def _crew_agent(name: str, body: str, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Describe an agent by role, goal and backstory where they make up its instruction exactly."""
    description = str(values["description"])
    parts = crew_parts(body)
    agent: dict[str, JsonValue]
    if parts is not None and description == (parts["goal"] or parts["role"]):
        agent = {**parts}
    else:
        agent = {"role": name, "goal": description, "backstory": ""}
        agent |= {"system_template": body, **TEMPLATES}
    if "model" in values:
        agent["llm"] = values["model"]
    if "max_iter" in values:
        agent["max_iter"] = values["max_iter"]
    return agent


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"`{one}`" for one in words)


def _slug(name: str) -> str:
    return _NOT_SLUG.sub("-", name.lower()).strip("-") or "agent"


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPECIAL = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\\"]')
_SPECIAL_IN_LINES = re.compile(r'[\x00-\x08\x0b-\x1f\x7f\\]|"(?="")|"$')


def write_toml(values: Mapping[str, JsonValue]) -> str:
    """Write a mapping as TOML.

    Args:
        values: The mapping; tables in it come last.

    Returns:
        The text, with a final line end.
    """
    return "\n".join(_table(values, ())) + "\n"


def _table(values: Mapping[str, JsonValue], place: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    if place and not all(isinstance(value, Mapping) for value in values.values()):
        lines += ["", f"[{'.'.join(map(_key, place))}]"]
    for name, value in values.items():
        if not isinstance(value, Mapping):
            lines.append(f"{_key(name)} = {_value(value)}")
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*place, name))
    return lines


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _value(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _lines(value) if "\n" in value else _text(value)
    if value is None or isinstance(value, Mapping):
        raise ValueError("TOML has no null, and tables stand by themselves")
    return f"[{', '.join(map(_value, value))}]"


def _text(text: str) -> str:
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _lines(text: str) -> str:
    return f'"""\n{_SPECIAL_IN_LINES.sub(_escape, text)}"""'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return f"\\{character}" if character in '"\\' else f"\\u{ord(character):04x}"
