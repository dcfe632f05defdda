"""Progress: what of a planner's work is done, for its model, its agents and its record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fast_agent.workflows.plan import Step
from fast_agent.workflows.tagged import excerpt, tagged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.workflows.plan import Task

LONGEST: Final = 20_000
"""Longest text of one result in a prompt, in characters."""

ALL_TOGETHER: Final = 200_000
"""Most characters of results in a prompt; each is cut the shorter, the more there are."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a task.

    Args:
        task: The task.
        text: What the agent answered, or why it failed.
        failed: Whether it failed.
    """

    task: Task
    text: str
    failed: bool = False

    @property
    def facts(self) -> JsonObject:
        """What the record says of it."""
        said = {"error": excerpt(self.text)} if self.failed else {"text": excerpt(self.text)}
        status = "failed" if self.failed else "done"
        return {**task_facts(self.task), "status": status, **said}


@dataclass(slots=True)
class Progress:
    """The steps done so far, with what came of them, and those that were given up."""

    _steps: list[tuple[Step, tuple[Result, ...] | None]] = field(
        default_factory=list[tuple[Step, "tuple[Result, ...] | None"]]
    )

    def add(self, step: Step, results: Sequence[Result]) -> None:
        """Add a step that was done."""
        self._steps.append((step, tuple(results)))

    def give_up(self, steps: Sequence[Step]) -> None:
        """Add steps of a plan that another plan takes the place of."""
        self._steps += [(step, None) for step in steps]

    @property
    def results(self) -> list[Result]:
        """All results, in the order of the tasks."""
        return [result for _, result in self._numbered()]

    @property
    def any_done(self) -> bool:
        """Whether a task was done."""
        return any(not result.failed for result in self.results)

    @property
    def any_tried(self) -> bool:
        """Whether a task was tried."""
        return any(results is not None for _, results in self._steps)

    def written(self, *, failures: bool) -> str:
        """Write the results for a prompt, escaped and bounded; empty where there are none.

        Args:
            failures: Whether failed tasks are told of too.
        """
        told = [(at, one) for at, one in self._numbered() if failures or not one.failed]
        limit = min(LONGEST, ALL_TOGETHER // max(1, len(told)))
        return "\n".join(
            [
                tagged(
                    "failure" if one.failed else "result",
                    excerpt(one.text, limit) or "[no text]",
                    step=str(number),
                    agent=one.task.agent,
                    task=excerpt(one.task.description, limit),
                )
                for number, one in told
            ]
        )

    def record(self) -> list[JsonValue]:
        """Give every step as plain JSON."""
        return [
            {
                "description": excerpt(step.description),
                "tasks": [{**task_facts(task), "status": "not_run"} for task in step.tasks]
                if results is None
                else [result.facts for result in results],
            }
            for step, results in self._steps
        ]

    def _numbered(self) -> Iterator[tuple[int, Result]]:
        number = 0
        for _, results in self._steps:
            if results is not None:
                number += 1
                for result in results:
                    yield number, result


def task_facts(task: Task) -> dict[str, JsonValue]:
    """Give a task as plain JSON."""
    return {"agent": task.agent, "description": excerpt(task.description)}
