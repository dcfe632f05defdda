"""Recorder: asks the world, and writes down what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fast_agent.errors import FastAgentError, RunError
from fast_agent.recording.cassette import CassetteWriter, Entry, Failure
from fast_agent.steps.parts import Parts, StepRedactor
from fast_agent.steps.steps import NULL_STEPS, Places

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from anyio import CancelScope

    from fast_agent.messages.message import Message
    from fast_agent.steps.steps import Codec, Kind, Place, Step, Work
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")


class Recorder:
    """Steps of a run that is recorded.

    Args:
        path: The file; one that is there is replaced.
        redactor: What must not be written.
        head: Facts of the recording, for people.

    Raises:
        RunError: The file cannot be written.
    """

    def __init__(
        self, path: Path, redactor: StepRedactor | None = None, head: JsonObject | None = None
    ) -> None:
        self._redactor = redactor or StepRedactor()
        self._writer = CassetteWriter(path, self._hidden(head or {}))
        self.parts = Parts(self._redactor, self._writer.part)
        self.places = Places(self, self.parts)

    @property
    def top(self) -> Place:
        """The place outside of all turns."""
        return self.places.top

    @property
    def replays(self) -> bool:
        """False: the world is asked."""
        return False

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask the outside, and write down what it answers; see `Steps.ask`."""
        key = self.places.key(step.kind, self._redactor.redact(step.name))
        asked = self._redactor.redacted(step.asked)
        try:
            answer = await work()
        except FastAgentError as error:
            hint = None if error.hint is None else self._redactor.redact(error.hint)
            failure = Failure(type(error).__name__, self._redactor.redact(error.message), hint)
            self._writer.entry(Entry(key, asked, failure=failure))
            raise
        except Exception as error:
            self._writer.entry(
                Entry(key, asked, failure=Failure("RunError", self._redactor.redact(str(error))))
            )
            raise
        except BaseException:
            self._writer.entry(Entry(key, asked, unfinished=True))
            raise
        gave = self._redactor.redacted(codec.write(answer))
        self._writer.entry(Entry(key, asked, gave))
        return answer

    async def enter(self, agent: str) -> None:
        """Write down that a turn begins; see `Steps.enter`."""
        if not self.places.here().silent:
            self._writer.entry(Entry(self.places.key("order", agent)))

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        """Enter a turn; see `Steps.turn`."""
        return self.places.turn(agent, message, call_id)

    def inside(self) -> AbstractContextManager[None]:
        """Make what a tool asks part of its step; see `Steps.inside`."""
        return self.places.silence()

    def deadline(self, name: str, seconds: float) -> AbstractContextManager[CancelScope]:
        """Cancel what is inside after a time; what it asked then has no answer."""
        return NULL_STEPS.deadline(name, seconds)

    def check(self) -> None:
        """Accept the run: a recording has nothing to differ from."""

    def part(self, digest: str) -> JsonValue:
        """Refuse: nothing is read from a recording that is being made."""
        raise RunError(f"there is no recording to read the piece `{digest}` from")

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Look, and write down what there is; see `Steps.note`."""
        seen = value()
        if not self.places.here().silent:
            key = self.places.key(kind, self._redactor.redact(name))
            self._writer.entry(Entry(key, gave=self._redactor.redact(seen)))
        return seen

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Find it out, and write it down; see `Steps.fact`."""
        with self.places.outside():
            return self.note("fact", name, value)

    def new_id(self, fresh: Callable[[], str]) -> str:
        """Make an id, and write it down; see `Steps.new_id`."""
        made = self.note("id", "turn", fresh)
        self.places.turn_ids.add(made)
        return made

    def close(self, *, complete: bool = True) -> None:
        """End the recording; safe to call twice.

        Args:
            complete: Whether the run came to its end.
        """
        self._writer.close(complete=complete)

    def _hidden(self, head: JsonObject) -> JsonObject:
        return {key: self._redactor.redacted(value) for key, value in head.items()}
