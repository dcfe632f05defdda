"""Modes: the agents a person may talk to, as clients offer them.

They are modes, and also a configuration option, which a later protocol has instead of modes and
whose choices may change while a session is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fast_agent.agent_app import AgentApp
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.text.json_value import JsonObject, JsonValue

    Waiting = Mapping[str, AgentConfig]

OPTION: Final = "agent"
"""The id of the configuration option."""

_MARK: Final = "needs approval"


def modes(app: AgentApp, current: str, waiting: Waiting) -> JsonObject:
    """Return the agents as modes.

    Args:
        app: Those that may act.
        current: The one that is talked to.
        waiting: Those that were found, and act once the person approved them.
    """
    listed: list[JsonValue] = [*_described("id", app, waiting)]
    return {"currentModeId": current, "availableModes": listed}


def options(app: AgentApp, current: str, waiting: Waiting) -> list[JsonValue]:
    """Return the agents as the choices of a configuration option; see `modes`."""
    listed: list[JsonValue] = [*_described("value", app, waiting)]
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


def names(app: AgentApp, waiting: Waiting) -> list[str]:
    """Name the agents that can be chosen."""
    able = app.agent_names()
    return [*able, *(name for name in waiting if name not in able)]


def _described(key: str, app: AgentApp, waiting: Waiting) -> Iterator[JsonObject]:
    able = app.agent_names()
    for name in names(app, waiting):
        is_able = name in able and name not in waiting
        config = waiting[name] if name in waiting else app.load_set.cards[name].config
        described: dict[str, JsonValue] = {key: name, "name": name}
        if not is_able:
            described["name"] = f"{name} ({_MARK})"
        if config.description:
            described["description"] = config.description
        yield described
