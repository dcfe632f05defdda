"""Cards of fast-agent-mcp, which have fields beyond the AgentCard design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF, PEER_FIELDS
from fast_agent.cards.records import MCP_SERVER, PEER_SERVER_FIELDS
from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.formats.foreign import clip
from fast_agent.text.json_value import as_list, as_object

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import CardType
    from fast_agent.formats.foreign import ForeignFile
    from fast_agent.text.json_value import JsonValue, Keys

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
    if "mcp_connect" in draft.values:
        draft.values["mcp_connect"] = _servers(file, draft.values["mcp_connect"])
    fields.close("a card")
    return [draft]


def _servers(file: ForeignFile, servers: JsonValue) -> JsonValue:
    """Leave out what a card does not say of a server; a server without a `target` is left out."""
    if isinstance(servers, Mapping):
        kept = {name: _server(file, name, one) for name, one in servers.items()}
        return {name: one for name, one in kept.items() if one is not None}
    found = [_server(file, index, one) for index, one in enumerate(as_list(servers))]
    return [one for one in found if one is not None]


def _server(file: ForeignFile, place: str | int, server: JsonValue) -> JsonValue:
    if not isinstance(server, Mapping):
        return _target(file, ("mcp_connect", place), server)
    fields = file.fields(("mcp_connect", place))
    known = {entry.name for entry in MCP_SERVER.entries}
    kept = {name: fields.take(name) for name in server if name in known}
    if "target" in kept:
        kept["target"] = _target(file, fields.place("target"), kept["target"])
    token = fields.values.get("access_token")
    headers = as_object(kept.get("headers"))
    if isinstance(token, str) and "Authorization" not in headers:
        kept["headers"] = {**headers, "Authorization": f"Bearer {token}"}
        fields.take("access_token")
        fields.adapted("access_token", "`access_token` becomes a header")
    fields.none_of(PEER_SERVER_FIELDS)
    fields.close("a server")
    return kept if "target" in kept else None


def _target(file: ForeignFile, keys: Keys, target: JsonValue) -> JsonValue:
    """Write the command that runs a package of npm, which a card there may name alone."""
    if not isinstance(target, str) or not target.startswith("@"):
        return target
    file.note(rules.ADAPTED_FIELD, f"`{clip(target)}` is run by `npx -y`", keys)
    return f"npx -y {target}"
