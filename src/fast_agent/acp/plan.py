"""Plan: what a planner wants done and what is done of it, as the client shows plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

_STATUS = {"started": "in_progress", "done": "completed"}
_NOT_DONE = {"failed": "failed", "cancelled": "cancelled"}


class PlanView:
    """The entries of the plans of one turn, in order.

    A plan that follows another takes the place of what the other one left undone.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str, str, int], dict[str, JsonValue]] = {}

    def planned(self, facts: JsonObject) -> JsonObject | None:
        """Take a plan; gives the update to send, or None where it says nothing new."""
        self._entries = {
            key: entry for key, entry in self._entries.items() if entry["status"] != "pending"
        }
        number, steps = facts.get("number"), facts.get("steps")
        if not isinstance(number, int) or not _is_list(steps):
            return None
        for step in steps:
            tasks = step.get("tasks") if isinstance(step, Mapping) else None
            for task in tasks if _is_list(tasks) else ():
                if isinstance(task, Mapping):
                    self._add(number, task)
        return self._update()

    def moved(self, facts: JsonObject) -> JsonObject | None:
        """Take what became of a task; gives the update to send, or None."""
        number, status = facts.get("plan"), str(facts.get("status"))
        if not isinstance(number, int):
            return None
        name = (number, str(facts.get("agent")), str(facts.get("description")))
        wanted = "pending" if status == "started" else "in_progress"
        for key, entry in self._entries.items():
            if key[:3] == name and entry["status"] == wanted:
                entry["status"] = _STATUS.get(status, "completed")
                if status in _NOT_DONE:
                    entry["content"] = f"{entry['content']} ({_NOT_DONE[status]})"
                return self._update()
        return None

    def _add(self, number: int, task: JsonObject) -> None:
        agent, description = str(task.get("agent")), str(task.get("description"))
        same = sum(key[:3] == (number, agent, description) for key in self._entries)
        self._entries[number, agent, description, same] = {
            "content": f"{agent}: {description}",
            "priority": "medium",
            "status": "pending",
        }

    def _update(self) -> JsonObject:
        entries: list[JsonValue] = [dict(entry) for entry in self._entries.values()]
        return {"sessionUpdate": "plan", "entries": entries}


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
