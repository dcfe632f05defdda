"""Agents of Claude Code: `.claude/agents/**/*.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.inline import take_server_names, take_servers, take_skills

if TYPE_CHECKING:
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.foreign import Fields, ForeignFile

_FAMILY = "claude"
_WITHOUT = {
    "hooks": ("it runs commands around tool calls", "write `tool_hooks` with Python functions"),
    "memory": ("it keeps notes between sessions", "let the agent keep a file, with `files: write`"),
    "background": ("it runs apart from the conversation", "agents of one turn run in parallel"),
    "isolation": ("it works in a Git worktree", "start `fast-agent` in one, or set `cwd`"),
    "color": ("the color of its name", "the terminal chooses colors automatically"),
    "emoji": ("a picture for lists", "put it in the description"),
    "vibe": ("text for lists", "put it in the description"),
    "initialPrompt": ("a first message", "start with `fast-agent go --message`"),
    "allowedTools": ("Claude Code ignores it in agents", "write `tools` there, or `files` here"),
    "allowed-tools": ("Claude Code ignores it in agents", "write `tools` there, or `files` here"),
    "version": ("a version of the text", "keep it in version control"),
    "author": ("who wrote it", "keep it as a comment"),
    "category": ("a place in a list", "keep it as a comment"),
    "tags": ("words for a list", "put them in the description"),
}


def read_claude(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the agent of a file.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools.

    Returns:
        The agent.
    """
    fields = file.fields()
    draft = Draft(file, name=fields.text("name") or "", instruction=file.body)
    draft.describe(fields, "description")
    draft.take_model(fields, effort="effort")
    draft.request(fields, "maxTurns", "max_iterations", above=0)
    _take_tools(draft, fields, choice)
    if isinstance(fields.values.get("mcpServers"), list):
        take_server_names(draft, fields, "mcpServers")
    elif fields.has("mcpServers"):
        take_servers(draft, fields, "mcpServers")
    take_skills(draft, fields, "skills")
    _take_permission(draft, fields)
    omits = fields.flag("omitClaudeMd") if fields.has("omitClaudeMd") else None
    draft.has_project = omits is not True
    fields.none_of(_WITHOUT)
    fields.close("a Claude Code agent")
    return [draft]


def _take_tools(draft: Draft, fields: Fields, choice: ToolChoice) -> None:
    tools = fields.words("tools") if fields.has("tools") else None
    if tools is None:
        draft.open(choice, "an agent without `tools`")
    else:
        draft.take_tools(tools, ("tools",), _FAMILY)
    denied = fields.words("disallowedTools") if fields.has("disallowedTools") else None
    if denied is not None:
        draft.deny(denied, ("disallowedTools",), _FAMILY)


def _take_permission(draft: Draft, fields: Fields) -> None:
    mode = fields.text("permissionMode")
    if mode == "plan":
        draft.abilities -= {"write", "shell"}
        fields.adapted("permissionMode", "`plan` only reads, so the card may read files only")
    elif mode == "default":
        draft.values["confirm"] = ["execute", "write_file", "edit_file"]
    elif mode is not None:
        draft.file.mapped.discard(("permissionMode",))
        draft.file.note(
            rules.LOST_FIELD,
            f"`permissionMode: {mode}` changes what the user is asked; a card cannot",
            ("permissionMode",),
            "write `confirm: [...]` with the tools that ask before each call",
        )
