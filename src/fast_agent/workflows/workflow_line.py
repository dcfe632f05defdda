"""What a user sees when a workflow progresses: one line per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue


def workflow_line(kind: str, facts: JsonObject) -> str:
    """Describe a `WorkflowAdvanced` event.

    Args:
        kind: Its kind.
        facts: Its facts.

    Returns:
        One line; empty where there is nothing worth a line.
    """
    if _is_shown_elsewhere(kind, facts):
        return ""
    match kind:
        case "step":
            return f"{_number(facts)} `{facts.get('agent')}` answered: {facts.get('text')}"
        case "branch":
            return f"`{facts.get('agent')}` answered: {facts.get('text')}"
        case "route":
            return f"goes to `{facts.get('agent')}`{_sureness(facts)}"
        case "plan":
            return f"plan {facts.get('number')}: {_format_steps(_items(facts.get('steps')))}"
        case "task":
            about = f"`{facts.get('agent')}`: {facts.get('description')}"
            return f"task {facts.get('status', 'done')}: {about}"
        case "rating":
            feedback = facts.get("feedback")
            return f"round {facts.get('round')} is {facts.get('rating')}: {feedback}"
        case "vote":
            return f"draw {facts.get('draw')} says {_standing(facts)}"
        case "flag":
            reason = facts.get("error") or str(facts.get("reason")).replace("_", " ")
            return f"draw {facts.get('draw')} is thrown away: {reason}"
        case _:
            parts = ", ".join([f"{name} {value}" for name, value in facts.items()])
            return f"{kind}: {parts}"


def step_title(facts: JsonObject) -> str:
    """Name a step of a chain, by the facts of its event."""
    return f"{_number(facts)} {facts.get('agent')}"


def _is_shown_elsewhere(kind: str, facts: JsonObject) -> bool:
    """A failed branch is a warning or its turn's error; a started task is reported when it ends."""
    failed = kind == "branch" and "error" in facts
    return failed or (kind == "task" and facts.get("status") == "started")


def _sureness(facts: JsonObject) -> str:
    reason = facts.get("reasoning")
    return f" ({facts.get('confidence')} confidence): {reason}" if reason else ""


def _number(facts: JsonObject) -> str:
    index = facts.get("index")
    at = index + 1 if isinstance(index, int) else index
    return f"step {at} of {facts.get('of')}:"


def _standing(facts: JsonObject) -> str:
    votes, margin = facts.get("votes"), facts.get("margin")
    has = f"`{facts.get('answer')}`, which has {votes} {'vote' if votes == 1 else 'votes'}"
    if not margin:
        return f"{has}; no answer is ahead"
    return f"{has} and is {margin} ahead" if facts.get("leads") else f"{has}; another is ahead"


def _format_steps(steps: Sequence[JsonValue]) -> str:
    agents = [str(_of(task, "agent")) for step in steps for task in _items(_of(step, "tasks"))]
    if not agents:
        return "nothing more to do"
    names = ", ".join([f"`{name}`" for name in dict.fromkeys(agents)])
    many = f"{len(agents)} tasks" if len(agents) > 1 else "a task"
    return f"{many} for {names}" + (f" in {len(steps)} steps" if len(steps) > 1 else "")


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _of(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, Mapping) else None
