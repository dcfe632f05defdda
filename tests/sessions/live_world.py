"""Live agents whose turns go into a session: one that calls two others, and a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.workflows.scripted_world import World

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.models.script import Call, Together

if TYPE_CHECKING:
    from fast_agent.models.model import ModelRequest
    from fast_agent.runtime.runtime import Runtime
    from fast_agent.sessions.journal import Journal

CONFIGS = (
    AgentConfig(name="lead", instruction="lead", agents=("kid", "pal")),
    AgentConfig(name="kid", instruction="kid"),
    AgentConfig(name="pal", instruction="pal"),
    AgentConfig(name="flow", instruction="flow", type="chain", sequence=("kid", "pal")),
)


def lead(request: ModelRequest) -> Together | Call | str:
    """Call both children at once when asked to `go`, and a tool that is not there; then answer."""
    last = request.messages[-1]
    if last.tool_results:
        if len(last.tool_results) == 2:
            return Call("nothing")
        return f"done after {len(request.messages)} messages"
    if last.text.startswith("go"):
        calls = [
            Call(f"agent__{name}", {"message": f"{last.text} {name}"}) for name in ("kid", "pal")
        ]
        return Together(tuple(calls))
    return f"echo {last.text}"


def world_of() -> World:
    return World({"lead": lead})


def live(world: World, journal: Journal, **fields: object) -> Runtime:
    """Make the agents live, with further fields of their options."""
    return world.runtime(*CONFIGS, settings=None, journal=journal, **fields)
