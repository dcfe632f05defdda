"""Replayer: answers from a recording; nothing outside is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from fast_agent.errors import (
    CardError,
    ConfigError,
    ContextError,
    FastAgentError,
    HistoryError,
    LimitError,
    ModelError,
    ResourceError,
    RunError,
    ToolError,
)
from fast_agent.steps.parts import StepRedactor, is_same_question, spread
from fast_agent.steps.steps import TURN_SEPARATOR, PlacedSteps, note_kept

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from anyio import Event

    from fast_agent.recording.cassette import Cassette, Entry, Failure
    from fast_agent.steps.steps import Codec, Key, Kind, Step, Work
    from fast_agent.text.json_value import JsonValue


T = TypeVar("T")

PATIENCE: Final = 30.0
"""How long a request waits that was cancelled when it was recorded, in seconds."""

_ERRORS: Final[Mapping[str, type[FastAgentError]]] = {
    error.__name__: error
    for error in (
        CardError,
        ConfigError,
        ContextError,
        HistoryError,
        LimitError,
        ModelError,
        ResourceError,
        RunError,
        ToolError,
    )
}
_MAX_COMPARED: Final = 100
_NOT_COUNTED: Final = frozenset({"human", "time", "order", "clock", "id", "fact"})
"""What need not be asked again: a user is only asked within a call, whose answer is enough."""


class Replayer(PlacedSteps):
    """Steps of a run that is answered from a recording.

    A question that differs from the recorded one is an error, and after the first such error every
    question is answered with it: what follows could not be trusted.

    Args:
        cassette: The recording.
        redactor: What was hidden when it was written.
        pause: Awaited before each answer, to let other tasks go first; None waits for nothing.
        soft: Answer a question that differs by its place: the next one of its kind, name and agent.
    """

    def __init__(
        self,
        cassette: Cassette,
        redactor: StepRedactor | None = None,
        pause: Callable[[], Awaitable[None]] | None = None,
        *,
        soft: bool = False,
    ) -> None:
        self._cassette = cassette
        self._soft = soft
        self._pause = pause
        self._seen: dict[str, JsonValue] = {}
        self._used: set[Key] = set()
        self._ranks = _ranks(cassette)
        self._begun: dict[str, int] = {}
        self._waiting: dict[tuple[str, int], Event] = {}
        super().__init__(redactor or StepRedactor(), self._seen.__setitem__)
        self.drift: RunError | None = None
        """The first question that was not the recorded one, or None."""
        self.drifted: list[str] = []
        """The questions of a soft replay that differed, each with its difference."""

    @property
    def replays(self) -> bool:
        """True: nothing outside is asked."""
        return True

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Answer from the recording; see `Steps.ask`."""
        if self.drift is not None:
            raise self.drift
        key = self.places.key(step.kind, self._redactor.redact(step.name))
        asked = self._redactor.redacted(step.asked)
        entry = self._cassette.entries.get(key)
        if entry is None:
            if step.kind in self._cassette.lacks:
                return await work()
            await self.stop_if_late()
        if entry is None or not self._is_asked(entry, asked):
            entry = self._by_place(key, asked, entry)
            key = entry.key
        self._used.add(key)
        note_kept(is_kept=True)
        if self._pause is not None and step.kind != "agent":  # its own questions are answers
            await self._pause()
        if entry.unfinished:
            if step.kind == "agent":
                return await work()  # what cancelled it cancels its own question again
            await self.stop_if_late()
            await self._wait(key)
        if entry.failure is not None:
            raise raised(entry.failure, self._redactor)
        try:
            return codec.read(self._redactor.restored(entry.gave))
        except (KeyError, TypeError, ValueError, AttributeError, FastAgentError) as error:
            # A recording is a file anyone may have edited.
            answer = f"the answer to {_describe_key(key)} in `{self._cassette.path}`"
            message = f"{answer} cannot be used: {error}"
            raise self._failed(RunError(message, hint="record the run again")) from error

    def _is_asked(self, entry: Entry, asked: JsonValue) -> bool:
        return entry.asked == asked or is_same_question(
            entry.asked, self._cassette.parts, asked, self._seen
        )

    def _by_place(self, key: Key, asked: JsonValue, entry: Entry | None) -> Entry:
        """Return the entry that answers a question which differs, in a soft replay.

        Raises:
            RunError: The replay is strict, or nothing of the kind is left in the recording.
        """
        error = self._difference(key, asked, entry)
        if self._soft and entry is None:
            same = (key.kind, key.name, key.agent)
            entry = next(
                (
                    one
                    for other, one in self._cassette.entries.items()
                    if (other.kind, other.name, other.agent) == same and other not in self._used
                ),
                None,
            )
        if not self._soft or entry is None:
            raise self._failed(error)
        self.drifted.append(error.message)
        return entry

    async def enter(self, agent: str) -> None:
        """Start a turn when it is its turn; see `Steps.enter`."""
        rank = self._ranks.get(self.places.key("order", agent))
        if rank is None:
            return
        if rank > self._begun.get(agent, 0):
            from anyio import Event, move_on_after

            # One that should come before may never come, where a time-out was tight.
            event = self._waiting.setdefault((agent, rank), Event())
            with move_on_after(PATIENCE):
                await event.wait()
            self.check()
        self._begun[agent] = max(self._begun.get(agent, 0), rank + 1)
        following = self._waiting.pop((agent, rank + 1), None)
        if following is not None:
            following.set()

    def check(self) -> None:
        """Check that the replay matched the recorded run so far; see `Steps.check`."""
        if self.drift is not None:
            raise self.drift

    def part(self, digest: str) -> JsonValue:
        """Return a piece of the recording; see `Steps.part`."""
        parts = self._cassette.parts
        if digest not in parts:
            shown = self._cassette.path
            raise RunError(f"the recording `{shown}` is missing the part `{digest}`")
        return self._redactor.restored(parts[digest])

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Return the recorded note; without one, the last of its kind, else the current value."""
        key = self.places.key(kind, self._redactor.redact(name))
        entries = self._cassette.entries
        entry = entries.get(key)
        while entry is None and key.number > 1:
            key = key._replace(number=key.number - 1)
            entry = entries.get(key)
        if entry is None:
            return value()
        return str(self._redactor.restored(entry.gave))

    def noted_late(self, key: Key) -> bool | None:
        """Return whether the time-out expired when it was recorded; see `Steps.deadline`."""
        entry = self._cassette.entries.get(key)
        return None if entry is None else entry.gave is True

    def note_late(self, key: Key, *, is_late: bool) -> None:
        """Keep nothing: a recording is not changed."""

    def left(self) -> tuple[Key, ...]:
        """Name the recorded questions that were not asked, in the order of the recording.

        What was asked inside of a step is not counted: the answer of the step is enough.
        """
        steps = {key.inside for key in self._used if key.inside != key.turn}
        return tuple(
            [
                key
                for key, entry in self._cassette.entries.items()
                if key not in self._used and key.kind not in _NOT_COUNTED and not entry.unfinished
                if steps.isdisjoint(_paths(key.turn))
            ]
        )

    async def _wait(self, key: Key) -> None:
        """Wait as the recorded run did, until this is cancelled too."""
        from anyio import sleep

        await sleep(PATIENCE)
        raise RunError(
            f"{_describe_key(key)} had no answer when it was recorded, and is still waited for",
            hint="record the run again; it was stopped while it waited",
        )

    def _failed(self, error: RunError) -> RunError:
        """Keep the first difference, and end all waiting."""
        self.drift = error
        for event in self._waiting.values():
            event.set()
        return error

    def _difference(self, key: Key, asked: JsonValue, entry: Entry | None) -> RunError:
        shown = self._cassette.path
        now = spread(asked, self._seen)
        hint = "undo the change, or record the run again"
        if not self._cassette.complete:
            hint = "the recording is incomplete; record the run again"
        if key.turn and all(other.turn != key.turn for other in self._cassette.entries):
            message = self._other_turn(key)
            if message is not None:
                return RunError(message, hint=hint)
        entry = entry or self._nearest(key, now)
        if entry is None:
            message = f"{_describe_key(key)} is not in the recording `{shown}`"
            return RunError(message, hint=hint)
        lines = difference(spread(entry.asked, self._cassette.parts), now)
        message = f"{_describe_key(key)} is not the one in the recording `{shown}`"
        if lines:
            message = f"{message}; `-` is recorded, `+` is asked now:\n{lines}"
        else:
            message = f"{message}: it is asked in another turn than `{entry.key.turn}`"
        return RunError(message, hint=hint)

    def _other_turn(self, key: Key) -> str | None:
        """Return how the message of an unrecorded turn differs from a recorded one's."""
        began = {used.turn for used in self._used}
        recorded = dict.fromkeys(
            [
                other.turn
                for other in self._cassette.entries
                if other.agent == key.agent and other.turn not in began
            ]
        )
        if not recorded:
            return None
        outer = key.turn.rpartition(TURN_SEPARATOR)[0]
        like = [turn for turn in recorded if turn.rpartition(TURN_SEPARATOR)[0] == outer]
        turn = (like or list(recorded))[0]
        lines = difference(
            _message_of(turn, self._cassette.parts), _message_of(key.turn, self._seen)
        )
        if not lines:
            return None
        return (
            f"a turn of agent `{key.agent}` starts with another message than in the recording"
            f" `{self._cassette.path}`; `-` is recorded, `+` is said now:\n{lines}"
        )

    def _nearest(self, key: Key, now: JsonValue) -> Entry | None:
        """Find the recorded question of the same kind and agent that is most like this one."""
        parts = self._cassette.parts
        best: Entry | None = None
        most = -1.0
        unused = (
            entry
            for other, entry in self._cassette.entries.items()
            if other.kind == key.kind and other.agent == key.agent and other not in self._used
        )
        for entry in islice(unused, _MAX_COMPARED):
            other = entry.key
            alike = float(other.number == key.number) + float(other.name == key.name)
            old, new = str(spread(entry.asked, parts))[-2000:], str(now)[-2000:]
            alike += SequenceMatcher(None, old, new, autojunk=False).quick_ratio()
            if alike > most:
                best, most = entry, alike
        return best


def raised(failure: Failure, redactor: StepRedactor) -> FastAgentError:
    """Return the error that was an answer.

    Args:
        failure: What was recorded of it.
        redactor: What was redacted in it.
    """
    kind = _ERRORS.get(failure.kind, RunError)
    shown = redactor.restored
    hint = None if failure.hint is None else str(shown(failure.hint))
    return kind(str(shown(failure.message)), hint=hint)


def _ranks(cassette: Cassette) -> dict[Key, int]:
    """Number the turns of each agent in the order they began."""
    ranks: dict[Key, int] = {}
    counts: dict[str, int] = {}
    for key in cassette.entries:
        if key.kind == "order":
            ranks[key] = counts.get(key.name, 0)
            counts[key.name] = ranks[key] + 1
    return ranks


def _paths(turn: str) -> Iterator[str]:
    """Yield the path of a place, and of the places around it."""
    while turn:
        yield turn
        turn = turn.rpartition(TURN_SEPARATOR)[0]


def _message_of(turn: str, parts: Mapping[str, JsonValue]) -> JsonValue:
    """Find the message a turn began with, by the short name in the turn's path."""
    short = turn.rpartition(":")[2].partition(".")[0]
    return next((part for digest, part in parts.items() if digest.startswith(short)), None)


def _describe_key(key: Key) -> str:
    """Describe which question is meant."""
    whose = f" of agent `{key.agent}`" if key.turn else ""
    if key.kind == "model":
        return f"model request {key.number} of a turn{whose}"
    if key.kind == "tool":
        return f"the tool call `{key.name}`{whose}"
    if key.kind == "agent":
        return f"the call `{key.name}` of an agent{whose}"
    if key.kind == "hook":
        return f"the hook `{key.name}`{whose}"
    if key.kind == "human":
        return f"the question to a user{whose}"
    if key.kind == "write":
        return f"what is written to the {key.name}"
    return f"the reading of `{key.name}`{whose}"


_MAX_LINES: Final = 60
_MAX_LINE: Final = 300
_CONTEXT: Final = 2


def difference(recorded: JsonValue, now: JsonValue) -> str:
    """Show the difference of two questions.

    Args:
        recorded: The one of the recording.
        now: The one asked now.

    Returns:
        A unified diff without its head, of at most some dozens of lines.
    """
    old, new = list(_lines(recorded, "")), list(_lines(now, ""))
    shown = list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
    if len(shown) > _MAX_LINES:
        left = len(shown) - _MAX_LINES
        shown = [*shown[:_MAX_LINES], f"… ({left} lines more)"]
    return "\n".join([line if len(line) <= _MAX_LINE else _cut(line) for line in shown])


def _lines(value: JsonValue, indent: str) -> Iterator[str]:
    if isinstance(value, str):
        for line in value.split("\n"):
            yield f"{indent}{line}"
    elif isinstance(value, Mapping):
        for key in value:
            yield from _member(f"{key}:", value[key], indent)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _member("-", inner, indent)
    elif isinstance(value, bool):
        yield f"{indent}{'true' if value else 'false'}"
    else:
        yield f"{indent}{'none' if value is None else value}"


def _member(label: str, value: JsonValue, indent: str) -> Iterator[str]:
    """Write a member on one line where it has one, else below its label."""
    inner = list(_lines(value, f"{indent}  "))
    if len(inner) == 1 and not (
        isinstance(value, Mapping | Sequence) and not isinstance(value, str)
    ):
        yield f"{indent}{label} {inner[0].strip()}"
    elif not inner:
        yield f"{indent}{label} nothing"
    else:
        yield f"{indent}{label}"
        yield from inner


def _cut(line: str) -> str:
    return f"{line[:_MAX_LINE]}… ({len(line) - _MAX_LINE} characters more)"
