"""Recorder: asks the world, and writes down what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fast_agent.errors import FastAgentError, RunError
from fast_agent.models.cassette import CassetteWriter, Entry, Failure
from fast_agent.models.cassette_parts import Parts, Veil
from fast_agent.models.tape import Places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.models.tape import Codec, Kind, Work
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")


class Recorder:
    """A tape that writes a recording.

    Args:
        path: The file; one that is there is replaced.
        veil: What must not be written.
        head: Facts of the recording, for people.

    Raises:
        RunError: The file cannot be written.
    """

    def __init__(
        self, path: Path, veil: Veil | None = None, head: JsonObject | None = None
    ) -> None:
        self._veil = veil or Veil()
        self._writer = CassetteWriter(path, self._hidden(head or {}))
        self.parts = Parts(self._veil, self._writer.part)
        self.places = Places(self.parts)

    @property
    def replays(self) -> bool:
        """False: the world is asked."""
        return False

    async def ask(
        self, kind: Kind, name: str, asked: JsonValue, work: Work[T], codec: Codec[T]
    ) -> T:
        """Ask the world, and write down what it answers; see `Tape.ask`."""
        if self.places.here().silent:
            return await work()
        key = self.places.key(kind, self._veil.hide(name))
        asked = self._veil.veiled(asked)
        try:
            answer = await work()
        except FastAgentError as error:
            hint = None if error.hint is None else self._veil.hide(error.hint)
            failure = Failure(type(error).__name__, self._veil.hide(error.message), hint)
            self._writer.entry(Entry(key, asked, failure=failure))
            raise
        except Exception as error:
            self._writer.entry(
                Entry(key, asked, failure=Failure("RunError", self._veil.hide(str(error))))
            )
            raise
        except BaseException:
            self._writer.entry(Entry(key, asked, unfinished=True))
            raise
        gave = self._veil.veiled(codec.write(answer))
        self._writer.entry(Entry(key, asked, gave))
        return answer

    async def enter(self, agent: str) -> None:
        """Write down that a turn begins; see `Tape.enter`."""
        if not self.places.here().silent:
            self._writer.entry(Entry(self.places.key("order", agent)))

    def check(self) -> None:
        """Do nothing: a recording has nothing to differ from."""

    def part(self, digest: str) -> JsonValue:
        """Refuse: nothing is read from a recording that is being made."""
        raise RunError(f"there is no recording to read the piece `{digest}` from")

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Look, and write down what there is; see `Tape.note`."""
        seen = value()
        if not self.places.here().silent:
            key = self.places.key(kind, self._veil.hide(name))
            self._writer.entry(Entry(key, gave=self._veil.hide(seen)))
        return seen

    def close(self, *, complete: bool = True) -> None:
        """End the recording; safe to call twice.

        Args:
            complete: Whether the run came to its end.
        """
        self._writer.close(complete=complete)

    def _hidden(self, head: JsonObject) -> JsonObject:
        return {key: self._veil.veiled(value) for key, value in head.items()}
