"""Fields that cards of the nearest peer have beyond the AgentCard design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS: Final = (
    "it reaches an agent at an address",
    "write `function_tools: [file.py:name]` with a function that asks it",
)

PEER_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "subagents": ("agents it starts automatically", "write `agents`, or a card of type `smart`"),
    "subagent_model": ("the model of such agents", "write `model` in their cards"),
    "harness_tools": ("tools of the program", "write `files`, `fetch` and `shell`"),
    "save_trajectory": (
        "it writes what happened",
        "sessions are kept; `fast-agent session export` writes them",
    ),
    "lifecycle_hooks": ("functions around its life", "write `tool_hooks`"),
    "commands": ("short names of messages", "keep such texts as skills, which `/NAME` calls"),
    "variables": ("values for placeholders", "write the values, or `{{file:PATH}}`"),
    **dict.fromkeys(
        (
            "url",
            "transport",
            "streaming",
            "polling",
            "accepted_output_modes",
            "headers",
            "auth",
            "relative_card_path",
            "request_timeout_seconds",
        ),
        _ADDRESS,
    ),
}
"""What each field is there, and what does the same here."""
