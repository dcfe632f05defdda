"""Teams of docker-agent (cagent): a YAML file with `agents`, `models` and `toolsets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.foreign import Fields
from fast_agent.formats.inline import add_connect, take_agents
from fast_agent.formats.servers import read_server
from fast_agent.formats.tools import UnsupportedTool, ability_of

if TYPE_CHECKING:
    from fast_agent.formats.foreign import ForeignFile
    from fast_agent.formats.tools import Ability
    from fast_agent.text.json_value import JsonValue

_AGENT: Final = {
    "welcome_message": ("a first text on the screen", "say it in the description"),
    "handoffs": (
        "agents that take over the conversation",
        "write `agents`, or a card of type `router`, which chooses among them",
    ),
    "commands": ("short names of messages", "keep them as files for `go --prompt-file`"),
    "rag": ("documents that are searched", "serve them as a `guide`, with `resource_tools: true`"),
    "code_mode_tools": ("tools are called from code", "write `function_tools`"),
    "structured_output": (
        "the shape of answers",
        "start `fast-agent go` with `--json-schema FILE`",
    ),
    "num_history_items": ("how much of the history it sees", "write `use_history: false` for none"),
    "hooks": ("it runs commands around tool calls", "write `tool_hooks` with Python functions"),
    "add_description_parameter": ("tools ask why they are called", None),
    "skills": ("whether it may use skills", "name their directories under `skills` in the card"),
    "fallback": ("other models if one fails", "name another with `--model`"),
    "cache": ("answers are kept", "record with `fast-agent go --record FILE`"),
    "redact_secrets": ("secrets are hidden", "secrets are hidden in what is printed"),
    "use_user_settings": ("settings of the program", None),
    "max_consecutive_tool_calls": ("repeated calls end the turn", "set `usage_limits`"),
    "max_old_tool_call_tokens": ("old results are cut", "set `tool_result_bytes`"),
    "readonly": ("it changes nothing", "write `files: read` in the card"),
    "instruction_file": ("its instruction is in a file", "write `{{file:PATH}}` in the body"),
    "toon": ("results in a shorter form", None),
    "prompt_files": ("files of instructions", "write `{{file:PATH}}` in the body"),
}
_MODEL: Final = {
    "base_url": ("the address of the provider", "set `PROVIDER.base_url` in the configuration"),
    "token_key": ("the variable of the key", "set `PROVIDER.api_key` in the configuration"),
    "provider_opts": ("options of the provider", "write `request_params: {extra_body: ...}`"),
    "thinking_budget": ("how long it thinks", "write `model: NAME.high`"),
    "track_usage": ("it counts tokens", "tokens are always counted"),
    "routing": ("it chooses among models", "use a card of type `router` with one agent a model"),
    "title_model": ("a model for titles", None),
    "display_name": ("a name for people", None),
    "bypass_models_gateway": ("how it is reached", None),
}
_TOP: Final = {
    "rag": ("documents that are searched", "serve them as a `guide`"),
    "providers": ("addresses of providers", "set `PROVIDER.base_url` in the configuration"),
    "metadata": ("facts about the file", "keep them as comments"),
    "version": ("the version of the format", "`schema_version` is that of cards"),
    "toolsets": ("toolsets under names", "write the tools into the cards that use them"),
    "budgets": ("bounds of cost", "set `usage_limits` in `request_params`"),
    "hooks": ("it runs commands around tool calls", "write `tool_hooks` with Python functions"),
    "lints": ("checks of the file", None),
    "env_file": ("a file of variables", "export them before"),
    "env_files": ("a file of variables", "export them before"),
}
_TOOLSETS: Final[Mapping[str, frozenset[Ability]]] = {
    "filesystem": frozenset({"read", "write"}),
    "shell": frozenset({"shell"}),
    "fetch": frozenset({"fetch"}),
    "user_prompt": frozenset({"ask"}),
}
_NO_TOOLSET: Final = {
    "think": ("is for thinking", "write `model: NAME.high` in the card"),
    "todo": ("keeps a list of tasks", "use a card of type `orchestrator`"),
    "tasks": ("keeps a list of tasks", "use a card of type `orchestrator`"),
    "memory": ("keeps a memory", "add the MCP server of a memory"),
    "script": ("runs scripts", "write `function_tools: [file.py:name]`"),
    "api": ("calls an address", "write `function_tools: [file.py:name]`"),
    "openapi": ("calls the addresses of an API", "add an MCP server for the API"),
    "lsp": ("asks a language server", "add an MCP server that does"),
    "a2a": ("asks an agent at an address", "write `function_tools: [file.py:name]`"),
    "rag": ("searches documents", "serve them as a `guide`, with `resource_tools: true`"),
    "background_agents": ("runs agents apart", "write `agents`; they run in parallel"),
    "transfer_task": ("asks other agents", "write `agents` in the card"),
    "handoff": ("hands over to agents", "write `agents` in the card"),
    "model_picker": ("changes its model", "a card has one `model`"),
}
_TOOLSET_FIELDS: Final = {
    "instruction": ("text for the model", "say it in the instruction"),
    "path": ("where it keeps its file", None),
    "shared": ("whether agents share it", None),
    "defer": ("it loads tools late", None),
    "ignore_vcs": ("which files it sees", "`.gitignore` is respected"),
    "post_edit": ("commands after an edit", "write `tool_hooks`"),
    "env": ("variables of commands", "set `shell.variables` in the configuration"),
    "timeout": ("a time limit", "set `shell.timeout_seconds` in the configuration"),
    "safer": ("what asks first", "write `confirm: [execute]`"),
    "sandbox": ("where commands run", "write `confirm: [execute]`"),
    "allow_list": ("paths it may use", "the workspace is the bound"),
    "deny_list": ("paths it may not use", "the workspace is the bound"),
    "allowed_domains": ("addresses it may get", None),
    "blocked_domains": ("addresses it may not get", None),
    "name": ("a name of the toolset", None),
}


def read_docker_agent(file: ForeignFile) -> list[Draft]:
    """Read the agents of a team; the one called `root`, or the first, is talked to first.

    Args:
        file: The file; what becomes of each field is put down in it.

    Returns:
        The agents.
    """
    top = file.fields()
    agents = top.below("agents")
    drafts: list[Draft] = []
    used: set[str] = set()
    confirmed = _asked(top)
    for name in agents.values if agents is not None else ():
        fields = agents.below(name) if agents is not None else None
        if fields is None:
            continue
        draft = Draft(file, fields.keys, name=name)
        _read(draft, fields, used)
        if confirmed:
            draft.values["confirm"] = [*confirmed]
        drafts.append(draft)
    if agents is not None:
        agents.close("a mapping of agents")
    first = next((draft for draft in drafts if draft.name == "root"), None)
    for draft in [first] if first is not None else drafts[:1]:
        draft.is_first = True
    _close_models(top, used)
    top.none_of(_TOP)
    top.close("a docker-agent file")
    return drafts


def _read(draft: Draft, fields: Fields, used: set[str]) -> None:
    draft.describe(fields, "description")
    draft.instruction = fields.text("instruction") or ""
    _take_model(draft, fields, used)
    draft.request(fields, "max_iterations", "max_iterations", above=0)
    take_agents(draft, fields, "sub_agents")
    _take_additions(draft, fields)
    toolsets = fields.take("toolsets")
    for index, item in enumerate(toolsets if isinstance(toolsets, list) else ()):
        if isinstance(item, Mapping):
            _take_toolset(draft, Fields(draft.file, item, (*fields.keys, "toolsets", index)))
    fields.none_of(_AGENT)
    fields.close("a docker-agent agent")


def _take_additions(draft: Draft, fields: Fields) -> None:
    if fields.has("add_date") and fields.flag("add_date"):
        draft.appended.append("Today is {{currentDate}}.")
    if fields.has("add_environment_info") and fields.flag("add_environment_info"):
        draft.appended.append("{{env}}")
    for name in fields.words("add_prompt_files") or () if fields.has("add_prompt_files") else ():
        draft.prompt_files.append((name, fields.place("add_prompt_files")))


def _take_model(draft: Draft, fields: Fields, used: set[str]) -> None:
    name = fields.values.get("model")
    models = draft.file.fields().values.get("models")
    chosen = models.get(name) if isinstance(models, Mapping) and isinstance(name, str) else None
    if not isinstance(chosen, Mapping) or not isinstance(name, str):
        if isinstance(name, str) and "," in name:
            several = fields.words("model") or []
            fields = Fields(draft.file, {**fields.values, "model": several}, fields.keys)
        draft.take_model(fields)
        return
    fields.take("model")
    used.add(name)
    inner = Fields(draft.file, chosen, ("models", name))
    provider, model = inner.text("provider"), inner.text("model")
    spec: dict[str, JsonValue] = {"model": f"{provider}/{model}" if provider else model}
    draft.take_model(Fields(draft.file, spec, ("models", name)))
    for parameter, above in (
        ("temperature", -1.0),
        ("top_p", 0.0),
        ("max_tokens", 0.0),
        ("frequency_penalty", -3.0),
        ("presence_penalty", -3.0),
    ):
        draft.request(inner, parameter, parameter, above=above)
    if inner.has("parallel_tool_calls"):
        flag = inner.flag("parallel_tool_calls")
        params = draft.values.setdefault("request_params", dict[str, "JsonValue"]())
        if isinstance(params, dict) and flag is not None:
            params["parallel_tool_calls"] = flag
    inner.none_of(_MODEL)
    inner.close("a model of docker-agent")


def _close_models(top: Fields, used: set[str]) -> None:
    models = top.below("models") if top.has("models") else None
    if models is None:
        return
    for name in models.values:
        if name in used:
            models.take(name)
        else:
            models.lost(
                name, f"no agent has the model `{name}`", "remove it, or name it in an agent"
            )
    models.close("a mapping of models")


def _asked(top: Fields) -> list[str]:
    permissions = top.below("permissions") if top.has("permissions") else None
    if permissions is None:
        return []
    asked = permissions.words("ask") or [] if permissions.has("ask") else []
    for name in ("allow", "deny"):
        permissions.lost(
            name,
            f"`permissions.{name}` is about calls by pattern, and a card allows a tool or not",
            "leave tools out of the card, or write `confirm` with those that ask",
        )
    permissions.close("permissions of docker-agent")
    names = {"shell": "execute"}
    return [names.get(one.partition(":")[0], one.partition(":")[0]) for one in asked]


def _take_toolset(draft: Draft, fields: Fields) -> None:
    kind = fields.text("type") or ""
    if kind == "mcp":
        _take_mcp(draft, fields)
        return
    if kind in _TOOLSETS:
        names = fields.words("tools") if fields.has("tools") else None
        draft.abilities |= _TOOLSETS[kind] if names is None else _named(names) or _TOOLSETS[kind]
    else:
        what, hint = _NO_TOOLSET.get(kind, ("is not known", None))
        fields.lost("type", f"the toolset `{kind}` {what}, and a card has nothing like it", hint)
        if kind in _NO_TOOLSET:
            for name in fields.values:
                fields.take(name)  # it goes with the toolset that was reported
        return
    fields.none_of(_TOOLSET_FIELDS)
    fields.close(f"the toolset `{kind}`")


def _named(names: list[str]) -> frozenset[Ability]:
    found: set[Ability] = set()
    for name in names:
        tool = ability_of(name, "docker")
        if not isinstance(tool, UnsupportedTool):
            found |= tool.abilities
    return frozenset(found)


def _take_mcp(draft: Draft, fields: Fields) -> None:
    reference = fields.values.get("ref")
    name = fields.text("name")
    if name is None and isinstance(reference, str):
        name = reference.rpartition(":")[2]
    if name is None:
        name = _guessed(fields, len(draft.own_servers))
    place = fields.keys
    had = len(draft.file.notes)
    server = read_server(name, fields)
    if server is None:
        if len(draft.file.notes) == had:
            message = f"the MCP server `{name}` has neither a command nor an address"
            draft.file.note(rules.LOST_FIELD, message, place, "describe it in the configuration")
        return
    while server.name in draft.own_servers:
        server.name += "-2"
    draft.own_servers.add(server.name)
    if "cwd" in server.settings:
        message = f"the working directory of the server `{name}` cannot be written into a card"
        draft.file.note(rules.LOST_FIELD, message, place, "describe it in the configuration")
    add_connect(draft, server.connect())
    if server.tools is not None:
        draft.servers.setdefault(server.name, []).extend(server.tools)


def _guessed(fields: Fields, number: int) -> str:
    command = fields.values.get("command")
    arguments = fields.values.get("args")
    words = [str(command)] if isinstance(command, str) else []
    words += [str(word) for word in arguments] if isinstance(arguments, list) else []
    plain = [word for word in words if not word.startswith("-") and word not in {"npx", "uvx"}]
    last = plain[0].rpartition("/")[2] if plain else ""
    return last.partition("@")[0] or f"mcp-{number + 1}"
