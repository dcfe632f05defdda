"""Modes: the agents a person may talk to, as clients offer them.

They are modes, and a configuration option too, which a later protocol has in the place of modes and
whose choices may change while a session is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fast_agent.agent_app import AgentApp
    from fast_agent.text.json_value import JsonObject, JsonValue

OPTION: Final = "agent"
"""The id of the configuration option."""


def modes(app: AgentApp, current: str) -> JsonObject:
    """Give the agents as modes."""
    listed: list[JsonValue] = [
        _described("id", name, app.load_set.cards[name].config.description)
        for name in app.agent_names()
    ]
    return {"currentModeId": current, "availableModes": listed}


def options(app: AgentApp, current: str) -> list[JsonValue]:
    """Give the agents as the choices of a configuration option."""
    listed: list[JsonValue] = [
        _described("value", name, app.load_set.cards[name].config.description)
        for name in app.agent_names()
    ]
    option: JsonObject = {
        "id": OPTION,
        "name": "Agent",
        "description": "the agent that is talked to",
        "category": "mode",
        "type": "select",
        "currentValue": current,
        "options": listed,
    }
    return [option]


def _described(key: str, name: str, description: str | None) -> JsonObject:
    described: dict[str, JsonValue] = {key: name, "name": name}
    if description:
        described["description"] = description
    return described
