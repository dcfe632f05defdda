"""Custom agents of VS Code and Copilot: `.agent.md`, and `.chatmode.md` before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.inline import take_agents, take_servers

if TYPE_CHECKING:
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.foreign import Fields, ForeignFile

_WITHOUT = {
    "argument-hint": ("text in the input line", "put it in the description"),
    "handoffs": (
        "buttons that lead to other agents",
        "write `agents` in a card, or a card of type `router`, which chooses among them",
    ),
    "target": ("where the agent is shown", "a card is shown wherever it is loaded"),
    "infer": ("an older `disable-model-invocation`", "leave the agent out of `agents` of others"),
    "advancedOptions": ("options of the editor", "write `request_params` in the card"),
    "github": ("settings of GitHub", "say in the instruction what it may do there"),
    "hooks": ("it runs commands around tool calls", "write `tool_hooks` with Python functions"),
    "mode": ("an older field, which is ignored there", None),
    "hidden": ("it is ignored there", "write `tool_only: true` to list it nowhere"),
    "metadata": ("facts about the file", "keep them as comments"),
    "license": ("the license of the file", "keep it as a comment"),
    "version": ("a version of the text", "keep it in version control"),
    "author": ("who wrote it", "keep it as a comment"),
    "tags": ("words for a list", "put them in the description"),
    "title": ("an older name", "write `name`"),
}


def read_copilot(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the agent of a file.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools.

    Returns:
        The agent.
    """
    fields = file.fields()
    draft = Draft(file, name=fields.text("name") or "", instruction=file.body)
    draft.has_project = True
    draft.describe(fields, "description")
    draft.take_model(fields, effort="reasoning-effort")
    tools = fields.words("tools") if fields.has("tools") else None
    if tools is None:
        draft.open(choice, "an agent without `tools`")
    else:
        draft.take_tools(tools, ("tools",), "copilot")
    _take_agents(draft, fields)
    if fields.has("mcp-servers"):
        take_servers(draft, fields, "mcp-servers")
    if fields.has("user-invocable") and fields.flag("user-invocable") is False:
        draft.values["tool_only"] = True
    if fields.has("disable-model-invocation") and fields.flag("disable-model-invocation"):
        draft.is_hidden = True
        fields.adapted(
            "disable-model-invocation", "no other imported card names this agent under `agents`"
        )
    fields.none_of(_WITHOUT)
    fields.close("a custom agent of VS Code or Copilot")
    return [draft]


def _take_agents(draft: Draft, fields: Fields) -> None:
    if not fields.has("agents"):
        return
    # The field narrows what the tool `agent` may call.
    draft.agents = [one for one in draft.agents if one[0] != "*"]
    take_agents(draft, fields, "agents")
    if not draft.agents:
        draft.file.note(
            rules.ADAPTED_FIELD, "no agents may be called, as in a card without it", ("agents",)
        )
