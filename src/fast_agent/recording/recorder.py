"""Recorder: asks the world, and writes down what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fast_agent.errors import FastAgentError, RunError
from fast_agent.recording.cassette import CassetteWriter, Entry, Failure
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import PlacedSteps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.steps.steps import Codec, Key, Kind, Step, Work
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")


class Recorder(PlacedSteps):
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
        redactor = redactor or StepRedactor()
        shown = {key: redactor.redacted(value) for key, value in (head or {}).items()}
        self._writer = CassetteWriter(path, shown)
        super().__init__(redactor, self._writer.part)

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask the outside, and write down what it answers; see `Steps.ask`."""
        key = self.places.key(step.kind, self._redactor.redact(step.name))
        asked = self._redactor.redacted(step.asked)
        try:
            with self.places.inside(key):
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
        """Record that a turn starts; see `Steps.enter`."""
        if not self.places.here().silent:
            self._writer.entry(Entry(self.places.key("order", agent)))

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

    def noted_late(self, key: Key) -> None:
        """Return None: this is the first life of the run."""
        del key

    def note_late(self, key: Key, *, is_late: bool) -> None:
        """Write whether a time-out expired."""
        self._writer.entry(Entry(key, gave=is_late))

    def close(self, *, complete: bool = True) -> None:
        """End the recording; safe to call twice.

        Args:
            complete: Whether the run came to its end.
        """
        self._writer.close(complete=complete)
