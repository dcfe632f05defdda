"""Agent roles of Codex: `.codex/agents/**/*.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.formats.draft import Draft
from fast_agent.formats.inline import take_servers

if TYPE_CHECKING:
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.foreign import Fields, ForeignFile

_WITHOUT = {
    "nickname_candidates": ("names for lists", "a card has one name"),
    "approval_policy": (
        "what the user is asked",
        "write `confirm: [execute]` to be asked before each command",
    ),
    "model_reasoning_summary": ("how reasoning is shown", "the terminal has `/markdown`"),
    "model_verbosity": ("how long answers are", "say it in the instruction"),
    "model_provider": ("where the model is", "write `model: PROVIDER.NAME`"),
    "model_context_window": ("the size of the context", "the provider knows it"),
    "web_search": ("it searches the web", "add an MCP server that searches"),
    "tools": ("tools of the program", "add an MCP server with such a tool"),
    "features": ("switches of the program", None),
    "sandbox_workspace_write": ("rules of the sandbox", "a card has no sandbox of its own"),
    "skills": ("which skills are on", "name directories under `skills` in the card"),
    "shell_environment_policy": (
        "variables of commands",
        "set `shell.variables` in the configuration",
    ),
    "hide_agent_reasoning": ("how reasoning is shown", None),
    "personality": ("a tone", "say it in the instruction"),
    "spawn_agent": ("how agents start others", "write `agents` in the card"),
    "service_tier": ("a tier of the provider", "write `request_params: {extra_body: ...}`"),
}


def read_codex(file: ForeignFile, choice: ToolChoice) -> list[Draft]:
    """Read the role of a file.

    Args:
        file: The file; what becomes of each field is put down in it.
        choice: What an agent gets that names no tools, within its sandbox.

    Returns:
        The agent.
    """
    fields = file.fields()
    draft = Draft(file, name=fields.text("name") or "")
    draft.has_project = True
    draft.describe(fields, "description")
    draft.instruction = fields.text("developer_instructions") or ""
    draft.take_model(fields, effort="model_reasoning_effort")
    draft.open(choice, "a Codex role")
    _take_sandbox(draft, fields)
    if fields.has("mcp_servers"):
        take_servers(draft, fields, "mcp_servers")
    fields.none_of(_WITHOUT)
    fields.close("a Codex role")
    return [draft]


def _take_sandbox(draft: Draft, fields: Fields) -> None:
    mode = fields.text("sandbox_mode")
    if mode is None:
        return
    if mode == "read-only":
        draft.abilities -= {"write", "shell"}
        fields.adapted(
            "sandbox_mode",
            "`read-only` is not a sandbox here: the card may read files and run no commands",
        )
    else:
        fields.adapted(
            "sandbox_mode",
            f"`{mode}` is not a sandbox here: files are edited in the workspace only, but commands"
            " of `shell: true` are not confined",
            "write `confirm: [execute]` to be asked before each command",
        )
