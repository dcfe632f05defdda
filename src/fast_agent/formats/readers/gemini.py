"""Agents of Gemini CLI: `.gemini/agents/*.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.inline import take_servers

if TYPE_CHECKING:
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.foreign import ForeignFile

_REMOTE = "write a card with a tool that calls the agent at its address"
_WITHOUT = {
    "display_name": ("a name for people", "a card's `name` may hold spaces; or say it in the text"),
    "agent_card_url": ("an agent at an address", _REMOTE),
    "agent_card_json": ("an agent at an address", _REMOTE),
    "auth": ("a login at an address", _REMOTE),
    "timeout_mins": (
        "its longest run",
        "set `child_timeout_sec` in the card of the agent that calls it",
    ),
    "color": ("the color of its name", "the terminal chooses colors automatically"),
}


def read_gemini(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the agent of a file.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools.

    Returns:
        The agent; none where it is a remote one.
    """
    fields = file.fields()
    draft = Draft(file, name=fields.text("name") or "", instruction=file.body)
    draft.describe(fields, "description")
    kind = fields.text("kind") or "local"
    draft.take_model(fields)
    draft.request(fields, "temperature", "temperature", above=-1)
    draft.request(fields, "max_turns", "max_iterations", above=0)
    tools = fields.words("tools") if fields.has("tools") else None
    if tools is not None:
        draft.take_tools(tools, ("tools",), "gemini")
    elif kind == "local":
        draft.open(choice, "an agent without `tools`")
    for name in ("mcp_servers", "mcpServers"):
        if fields.has(name):
            take_servers(draft, fields, name)
    fields.none_of(_WITHOUT)
    fields.close("a Gemini CLI agent")
    if kind != "remote":
        return [draft]
    message = "an agent of kind `remote` runs elsewhere, and becomes no card"
    file.note(rules.LOST_FIELD, message, ("kind",), _REMOTE)
    return []
