"""Questions to the user of a run, which its workflow keeps with their answers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from fast_agent.tools.human import HumanAnswer, question_to_json

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.human import HumanRequest


def asked_by(given: Mapping[str, Any]) -> str:
    """Return what the keys of a step's questions begin with, the same in every attempt.

    Args:
        given: What the step was started with.
    """
    return f"{given['turn']} {given['kind']} {given['name']} {given['number']}:"


class Questions:
    """The questions of a run; they stay open whatever happens to its workers.

    Attributes:
        open: The open ones by their keys.
    """

    def __init__(self) -> None:
        self.open: dict[str, JsonObject] = {}
        self._answers: dict[str, HumanAnswer] = {}
        self._has_acted: dict[str, bool] = {}
        self._running: set[str] = set()
        self._asked = 0

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask for workflow code, and wait for the answer; see `Human.ask`."""
        self._asked += 1
        return await self._wait_for(str(self._asked), question_to_json(request))

    async def ask_for_step(self, key: str, question: JsonObject, *, is_first: bool) -> HumanAnswer:
        """Ask for a step, and wait for the answer; a step that has ended is not answered.

        Args:
            key: Names the question; the same in every attempt of the step.
            question: The question.
            is_first: Whether the step does nothing before it was let `act` on the answer.
        """
        # A worker hears some seconds later that its step was cancelled.
        if not any(key.startswith(step) for step in self._running):
            return HumanAnswer(action="cancel")
        if is_first:
            self._has_acted.setdefault(key, False)
        return await self._wait_for(key, question)

    async def _wait_for(self, key: str, question: JsonObject) -> HumanAnswer:
        """Wait for the answer to a question, which is closed where this is cancelled."""
        if key not in self._answers:
            self.open[key] = question
            try:
                await workflow.wait_condition(lambda: key in self._answers)
            finally:
                self.open.pop(key, None)
        return self._answers[key]

    def answer(self, key: str, action: str, content: dict[str, Any] | None) -> None:
        """Take the answer of a user; the first one counts."""
        if action in {"accept", "decline", "cancel"} and key not in self._answers:
            self._answers[key] = HumanAnswer(action=cast("Any", action), content=content)

    @contextmanager
    def of_step(self, step: str) -> Generator[None]:
        """Allow a step to ask while it runs; what has no answer when it ends is cancelled.

        Args:
            step: What the keys of its questions begin with.
        """
        self._running.add(step)
        try:
            yield
        finally:
            self._running.remove(step)
            for key in [one for one in self.open if one.startswith(step)]:
                self.answer(key, "cancel", None)

    def act(self, key: str) -> None:
        """Allow a step to act on an answer, one of its attempts alone.

        Raises:
            ApplicationError: Another attempt acted.
        """
        if self._has_acted.get(key, True):
            raise ApplicationError("another attempt of the step acted", non_retryable=True)
        self._has_acted[key] = True

    @property
    def may_act(self) -> list[str]:
        """The keys of the first questions of steps that did nothing yet."""
        return [key for key, has_acted in self._has_acted.items() if not has_acted]
