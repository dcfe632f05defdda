"""One workflow of each type, in which `kid` and `pal` work, and how all play their parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.workflows.scripted_world import agent, card

from fast_agent.models.script import Call

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import ModelRequest
    from fast_agent.models.script import Step

KID_FIRST = ("kid", "pal")
PLACES: dict[str, AgentConfig] = {
    "chain": card("top", "chain", sequence=KID_FIRST),
    "end of a chain": card("top", "chain", sequence=("pal", "kid")),
    "parallel": card("top", "parallel", fan_out=KID_FIRST),
    "fan_in": card("top", "parallel", fan_out=("pal",), fan_in="kid"),
    "router": card("top", "router", agents=KID_FIRST),
    "generator": card("top", "evaluator_optimizer", generator="kid", evaluator="pal"),
    "evaluator": card("top", "evaluator_optimizer", generator="pal", evaluator="kid"),
    "full": card("top", "orchestrator", agents=KID_FIRST),
    "iterative": card("top", "orchestrator", agents=KID_FIRST, plan_type="iterative"),
    "iterative_planner": card("top", "iterative_planner", agents=KID_FIRST),
    "MAKER": card("top", "MAKER", worker="kid", k=2, max_samples=6),
    "tool": agent("top", agents=KID_FIRST),
}
"""Each is called `top`; the name says where `kid` stands."""


def lead(request: ModelRequest) -> Step | str:
    """Play `top` as it should be played."""
    shape = request.output_schema
    if shape is None:
        asked = any(one.tool_results for one in request.messages) or not request.tools
        return "final" if asked else Call("agent__kid", {"message": "work"})
    tasks = [{"agent": name, "description": "work"} for name in KID_FIRST]
    step = {"description": "", "tasks": tasks}
    if shape.name == "plan":
        return json.dumps({"steps": [step]})
    if shape.name == "next_step":
        return json.dumps({**step, "is_complete": False})
    return json.dumps({"agent": "kid", "confidence": "high", "reasoning": ""})


def help_out(request: ModelRequest) -> str:
    """Play `pal` as it should be played."""
    return "fine" if request.output_schema is None else '{"rating": "GOOD"}'
