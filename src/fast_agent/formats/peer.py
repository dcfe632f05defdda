"""Cards of the nearest peer, which has fields beyond the AgentCard design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import CardType
    from fast_agent.formats.foreign import ForeignFile

_AT_AN_ADDRESS: Final = "write `function_tools: [file.py:name]` with a function that asks it"
_WITHOUT: Final = {
    "subagents": ("agents it starts by itself", "write `agents`, or a card of type `smart`"),
    "subagent_model": ("the model of such agents", "write `model` in their cards"),
    "harness_tools": ("tools of the program", "write `files`, `fetch` and `shell`"),
    "save_trajectory": (
        "it writes what happened",
        "sessions are kept; `session export` writes them",
    ),
    "lifecycle_hooks": ("functions around its life", "write `tool_hooks`"),
    "commands": ("short names of messages", "keep them as files for `go --prompt-file`"),
    "trim_tool_history": ("old tool results are cut", "long results are cut by themselves"),
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
        ("it reaches an agent at an address", _AT_AN_ADDRESS),
    ),
}
PEER_FIELDS: Final = frozenset({*_WITHOUT, "function_tools"})
"""Fields that tell a card of the peer from others."""

_TYPES: Final[dict[str, CardType]] = {name.lower(): name for name in CARD_TYPES}


def read_peer(file: ForeignFile) -> list[Draft]:
    """Read the card of a file.

    Args:
        file: The file; what becomes of each field is put down in it.

    Returns:
        The card; none for a type that has no counterpart.
    """
    fields = file.fields()
    draft = Draft(file, instruction=file.body, is_card=True)
    kind = (fields.text("type") or "agent").lower().replace("-", "_")
    if kind not in _TYPES:
        message = f"a card of type `{kind}` has no counterpart"
        file.note(rules.LOST_FIELD, message, ("type",), _AT_AN_ADDRESS)
        fields.none_of(_WITHOUT)
        for name in fields.values:
            fields.take(name)
        return []
    draft.values["type"] = _TYPES[kind]
    draft.name = fields.text("name") or ""
    if not file.body.strip():
        draft.instruction = fields.text("instruction") or ""
    fields.none_of(_WITHOUT)
    for name in FIELDS_OF[_TYPES[kind]]:
        if name in fields.values and name not in {"type", "name", "instruction"}:
            draft.values[name] = fields.take(name)
    fields.close("a card")
    return [draft]
