"""Plan: what a planner's model wants done, step by step, and by which agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.models.model import OutputSchema
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest
from fast_agent.workflows.brain import object_in

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

MAX_TASKS: Final = 1_000
"""Most tasks of one plan, and of one turn of a planner."""

_MAX_PROBLEMS: Final = 10


@frozen
class Task:
    """A piece of work for one agent.

    Args:
        agent: The agent's name.
        description: What it is to do.
    """

    agent: str
    description: str


@frozen
class Step:
    """Tasks that are done at the same time.

    Args:
        description: What the step is for.
        tasks: Its tasks; there is at least one.
    """

    description: str
    tasks: tuple[Task, ...]


@frozen
class Plan:
    """Steps that are done one after another.

    Args:
        steps: The steps; a plan for the next step alone has one at most.
        is_complete: Nothing is to be planned after them.
    """

    steps: tuple[Step, ...]
    is_complete: bool = False


class PlanShape(Protocol):
    """The shape of an answer that holds a plan."""

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        ...

    def parse(self, text: str) -> Plan:
        """Read the plan.

        Raises:
            ValueError: There is none, or it cannot be carried out; the error says what is wrong.
        """
        ...


class _Shape:
    """What both shapes are made of.

    Args:
        agents: The agents there are.
        may_be_empty: Whether nothing may be left to do.
        most_tasks: Most tasks it may have.
    """

    def __init__(
        self, agents: Sequence[str], *, may_be_empty: bool, most_tasks: int = MAX_TASKS
    ) -> None:
        self._agents = agents
        self._may_be_empty = may_be_empty
        self._most_tasks = most_tasks


class WholePlan(_Shape):
    """The shape of a plan of everything that is to be done."""

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        steps = _list_of(_object(**_step_properties(self._agents)), "the steps, in order")
        return OutputSchema("plan", _object(steps=steps))

    def parse(self, text: str) -> Plan:
        """Read the plan; see `PlanShape.parse`."""
        reading = _PlanReader(self._agents, self._most_tasks)
        items = reading.items(object_in(text), "steps", "")
        steps = tuple([reading.step(item, f"steps[{at}]") for at, item in enumerate(items)])
        if not steps and not self._may_be_empty:
            reading.problems.append("the plan has no step; plan at least one")
        reading.finish(steps)
        return Plan(steps)


class NextStep(_Shape):
    """The shape of a plan of the next step alone."""

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        complete: JsonObject = {
            "type": "boolean",
            "description": "whether no step has to follow; without tasks, whether all is done",
        }
        shape = _object(**_step_properties(self._agents), is_complete=complete)
        return OutputSchema("next_step", shape)

    def parse(self, text: str) -> Plan:
        """Read the plan; see `PlanShape.parse`."""
        value = object_in(text)
        reading = _PlanReader(self._agents, self._most_tasks)
        complete = value.get("is_complete", False)
        if not isinstance(complete, bool):
            reading.problems.append("`is_complete` must be true or false")
        idle = not value.get("tasks")
        if idle and not complete:
            reading.problems.append("`tasks` is empty: give a task, or set `is_complete` to true")
        elif idle and not self._may_be_empty:
            reading.problems.append("nothing was done yet: plan a step with at least one task")
        steps = () if idle else (reading.step(value, ""),)
        reading.finish(steps)
        return Plan(steps, is_complete=bool(complete))


class _PlanReader:
    """Reads steps and tasks, and collects all their errors."""

    def __init__(self, agents: Sequence[str], most_tasks: int) -> None:
        self.problems: list[str] = []
        self._agents = agents
        self._most_tasks = most_tasks

    def step(self, value: JsonValue, place: str) -> Step:
        """Read a step."""
        if not isinstance(value, Mapping):
            self.problems.append(f"`{place}` must be an object with `description` and `tasks`")
            return Step("", ())
        inner = f"{place}." if place else ""
        items = self.items(value, "tasks", inner)
        tasks = tuple([self._task(item, f"{inner}tasks[{at}]") for at, item in enumerate(items)])
        if not tasks:
            self.problems.append(f"`{inner}tasks` must have at least one task")
        description = value.get("description")
        return Step(description.strip() if isinstance(description, str) else "", tasks)

    def items(self, value: JsonObject, name: str, place: str) -> Sequence[JsonValue]:
        """Read a list."""
        found = value.get(name)
        if isinstance(found, Sequence) and not isinstance(found, str):
            return found
        self.problems.append(f"`{place}{name}` must be a list")
        return ()

    def finish(self, steps: Sequence[Step]) -> None:
        """Raise ValueError if anything was wrong."""
        count = sum([len(step.tasks) for step in steps])
        if count > self._most_tasks:
            self.problems.append(
                f"the plan has {count:,} tasks; {self._most_tasks:,} at most can be done"
            )
        if self.problems:
            more = len(self.problems) - _MAX_PROBLEMS
            named = [*self.problems[:_MAX_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]
            raise ValueError("\n".join(named))

    def _task(self, value: JsonValue, place: str) -> Task:
        if not isinstance(value, Mapping):
            self.problems.append(f"`{place}` must be an object with `agent` and `description`")
            return Task("", "")
        description = value.get("description")
        if not isinstance(description, str) or not description.strip():
            self.problems.append(f"`{place}.description` must say what to do")
            description = ""
        agent = value.get("agent")
        name = agent.strip() if isinstance(agent, str) else ""
        if name not in self._agents:
            known = ", ".join([f"`{one}`" for one in self._agents])
            near = closest(name, self._agents)
            guess = f" (did you mean `{near}`?)" if near else ""
            problem = (
                f"`{place}.agent`: no agent is named `{name[:100]}`{guess}; use one of {known}"
            )
            self.problems.append(problem)
        return Task(name, description.strip())


def _step_properties(agents: Sequence[str]) -> dict[str, JsonValue]:
    agent: JsonObject = {"type": "string", "enum": list(agents), "description": "who does it"}
    task = _object(agent=agent, description=_text("what the agent is to do, in full"))
    return {
        "description": _text("what the step is for"),
        "tasks": _list_of(task, "what is done at the same time"),
    }


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _list_of(items: JsonObject, description: str) -> JsonObject:
    return {"type": "array", "items": items, "description": description}


def _object(**properties: JsonValue) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
