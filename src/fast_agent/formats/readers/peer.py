"""Cards of the nearest peer, which has fields beyond the AgentCard design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF, PEER_FIELDS
from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import CardType
    from fast_agent.formats.foreign import ForeignFile

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
        file.note(rules.LOST_FIELD, message, ("type",), PEER_FIELDS["url"][1])
        fields.none_of(PEER_FIELDS)
        for name in fields.values:
            fields.take(name)
        return []
    draft.values["type"] = _TYPES[kind]
    draft.name = fields.text("name") or ""
    if not file.body.strip():
        draft.instruction = fields.text("instruction") or ""
    fields.none_of(PEER_FIELDS)
    for name in FIELDS_OF[_TYPES[kind]]:
        if name in fields.values and name not in {"type", "name", "instruction"}:
            draft.values[name] = fields.take(name)
    fields.close("a card")
    return [draft]
