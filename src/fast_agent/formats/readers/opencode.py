"""Agents of OpenCode: `.opencode/agent/**/*.md`, and `agent` in `opencode.json`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.tools import UnsupportedTool, ability_of
from fast_agent.text.json_value import as_object

if TYPE_CHECKING:
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.foreign import Fields, ForeignFile, Keys
    from fast_agent.text.json_value import JsonObject, JsonValue

_FAMILY = "opencode"
_FILE = re.compile(r"\{file:([^{}]+)\}")
_FACT = ("OpenCode sends it to the provider as an option", "keep it as a comment")
_WITHOUT = {
    "variant": ("a variant of the model", "write `model: NAME.high`, with one of its levels"),
    "color": ("the color of its name", "the terminal chooses colors automatically"),
    "options": ("options of the provider", "write `request_params: {extra_body: ...}`"),
    "hidden_from_cycle": ("the keys that change agents", "write `tool_only: true`"),
    "permissions": (
        "OpenCode knows `permission` only, and sends this to the provider",
        "write `permission` there, or `files` and `confirm` in the card",
    ),
    **dict.fromkeys(
        ("id", "category", "type", "version", "author", "tags", "dependencies", "license"), _FACT
    ),
}
_CONFIRMED = {
    "bash": ("execute",),
    "edit": ("write_file", "edit_file"),
    "write": ("write_file",),
    "webfetch": ("fetch",),
    "read": ("read_file",),
}
_ASKING_TOOLS: dict[str, tuple[str, ...]] = {**_CONFIRMED, "*": ("*",)}


def read_opencode(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the agent of a Markdown file.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools.

    Returns:
        The agent; none where it is switched off.
    """
    return _read(file, file.fields(), file.body, choice)


def read_opencode_json(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the agents of an `opencode.json`; its servers are read by `servers`.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools.

    Returns:
        The agents.
    """
    drafts: list[Draft] = []
    fields = file.fields()
    for group in ("agent", "mode", "agents"):
        agents = fields.below(group) if fields.has(group) else None
        if agents is None:
            continue
        for name in agents.values:
            inner = agents.below(name)
            if inner is not None:
                prompt = inner.text("prompt") or ""
                drafts += _read(file, inner, prompt, choice, name)
        agents.close("a mapping of agents")
    if drafts:
        _share(fields, drafts)
    return drafts


def _share(fields: Fields, drafts: list[Draft]) -> None:
    """Add what a configuration says for all its agents: a model, and files of instructions."""
    if fields.has("instructions"):
        named = fields.words("instructions") or []
        for draft in drafts:
            draft.prompt_files += [(path, ("instructions",)) for path in named]
    if fields.has("model"):
        for draft in drafts:
            if "model" not in draft.values:
                draft.take_model(fields)
        fields.adapted(
            "model",
            "it is the model of all agents; here, each card of this file names it",
            "write `default_model` in the configuration for all cards",
        )


def _read(
    file: ForeignFile, fields: Fields, body: str, choice: ToolChoice, name: str = ""
) -> list[Draft]:
    draft = Draft(file, fields.keys, name=name, instruction=body)
    if name:  # in a configuration, whose texts may name files
        _take_prompt_file(draft, (*fields.keys, "prompt"))
    draft.has_project = True
    named = fields.text("name") if fields.has("name") else None
    draft.name = name or named or agent_name(file.path)
    draft.describe(fields, "description")
    draft.take_model(fields, effort="reasoningEffort")
    draft.request(fields, "temperature", "temperature", above=-1)
    draft.request(fields, "top_p", "top_p", above=0)
    for steps in ("steps", "maxSteps"):
        draft.request(fields, steps, "max_iterations", above=0)
    _take_mode(draft, fields)
    _take_tools(draft, fields, choice)
    _take_permission(draft, fields)
    if not file.body and fields.keys == () and fields.has("prompt"):
        draft.instruction = fields.text("prompt") or ""
    disabled = any(fields.flag(off) for off in ("disable", "disabled") if fields.has(off))
    fields.none_of(_WITHOUT)
    fields.close("an OpenCode agent, where it goes to the provider as an option")
    if disabled:
        file.note(rules.LOST_FIELD, f"the agent `{draft.name}` is switched off", fields.keys)
        return []
    return [draft]


def _take_prompt_file(draft: Draft, place: Keys) -> None:
    """Include the file that a prompt `{file:PATH}` names, as OpenCode does."""
    found = _FILE.fullmatch(draft.instruction.strip())
    if found is not None:
        draft.instruction = ""
        draft.prompt_files.append((found[1].strip(), place))


def _take_mode(draft: Draft, fields: Fields) -> None:
    mode = fields.text("mode")
    draft.is_first = mode == "primary"
    hidden = fields.flag("hidden") if fields.has("hidden") else None
    if mode == "subagent" or hidden:
        draft.values["tool_only"] = True
    if mode not in {None, "primary", "subagent", "all"}:
        fields.lost(
            "mode", f"`mode: {mode}` is not a mode of OpenCode", "write `tool_only` or `default`"
        )


def _take_tools(draft: Draft, fields: Fields, choice: ToolChoice) -> None:
    value = fields.values.get("tools")
    place = fields.place("tools")
    if isinstance(value, list | tuple | str):
        draft.take_tools(fields.words("tools") or [], place, _FAMILY)
        return
    tools = as_object(fields.take("tools"))
    if True not in tools.values() and tools.get("*") is None and not fields.has("permission"):
        draft.open(choice, "an agent without `tools`")
    if fields.has("permission"):
        _permitted(draft, fields)
    for name, on in tools.items():  # of two that fit, the last one counts
        if on is True:
            draft.take_tools([name], place, _FAMILY)
        else:
            draft.deny([name], place, _FAMILY)


def _permitted(draft: Draft, fields: Fields) -> None:
    """Grant what is allowed by name; a tool that is not named is allowed there, but not here."""
    permission = fields.values.get("permission")
    if isinstance(permission, str):
        names = ["*"] if permission != "deny" else []
    else:
        names = [name for name, rule in as_object(permission).items() if _allows(rule)]
    for name in names:
        tool = ability_of(name, _FAMILY)
        if not isinstance(tool, UnsupportedTool):
            draft.abilities |= tool.abilities
    if "write" not in draft.abilities:
        draft.abilities.add("read")


def _allows(rule: JsonValue) -> bool:
    if isinstance(rule, Mapping):
        return any(word != "deny" for word in rule.values())
    return rule != "deny"


def _take_permission(draft: Draft, fields: Fields) -> None:
    value = fields.values.get("permission")
    if isinstance(value, str):
        fields.take("permission")
        if value == "ask":
            draft.values["confirm"] = ["*"]
        elif value == "deny":
            draft.abilities.clear()
        return
    inner = fields.below("permission") if fields.has("permission") else None
    if inner is None:
        return
    confirmed: list[str] = []
    for name, rule in inner.values.items():
        if name == "task":
            _take_calls(draft, inner, rule)
        elif _take_rule(draft, inner, name, rule):
            confirmed += _ASKING_TOOLS.get(name, (name,))
    if confirmed:
        draft.values["confirm"] = list(dict.fromkeys(confirmed))
    inner.close("a permission")


def _take_rule(draft: Draft, inner: Fields, name: str, rule: JsonValue) -> bool:
    """Take the rule of a tool; return whether calls of the tool ask first."""
    inner.take(name)
    if isinstance(rule, Mapping):
        inner.lost(
            name,
            f"rules of `{name}` by argument have no counterpart in a card, which asks by tool",
            f"write `confirm: [{', '.join(_ASKING_TOOLS.get(name, (name,)))}]`",
        )
        return not _always_asks(rule)
    if rule == "deny":
        draft.deny([name], inner.place(name), _FAMILY)
    return rule == "ask"


def _always_asks(rule: JsonObject) -> bool:
    return all(word == "allow" for word in rule.values())


def _take_calls(draft: Draft, inner: Fields, rule: JsonValue) -> None:
    """Take which agents it may call: a word for all, or a word by name."""
    inner.take("task")
    place = inner.place("task")
    if isinstance(rule, Mapping):
        named = [str(name) for name, word in rule.items() if word != "deny" and "*" not in name]
        draft.agents += [(name, place) for name in named]
        if any("*" in name and name != "*" for name in rule) or rule.get("*") not in {None, "deny"}:
            draft.file.note(
                rules.LOST_FIELD,
                "patterns of agents have no counterpart in a card, which names each",
                place,
                "name the agents under `agents` in the card",
            )
    elif rule != "deny":
        draft.agents.append(("*", place))


def agent_name(path: str) -> str:
    """Return the name of an agent, which is its path below the folder of agents."""
    parts = PurePath(path).parts
    for folder in ("agent", "agents", "mode", "modes"):
        if folder in parts[:-1]:
            at = len(parts) - 2 - parts[:-1][::-1].index(folder)
            return PurePath(*parts[at + 1 :]).with_suffix("").as_posix()
    return PurePath(path).stem
