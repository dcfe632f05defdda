"""Cassettes: the files recordings are kept in, one JSON value a line.

The first line is the head. Pieces of requests come before the first entry that names them, entries
are in the order they were answered, and a line at the end says that the run was over. A line is
written at once, so a recording that broke off can be read up to its last whole line.

A `Recorder` asks the world, and writes down what it answers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, cast, get_args

from fast_agent.errors import FastAgentError, RunError, os_reason
from fast_agent.messages.json_text import JsonTextError, parse_json, write_json
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Key, Kind, PlacedSteps
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.steps.steps import Codec, Step, Work
    from fast_agent.text.json_value import JsonObject, JsonValue

VERSION: Final = 2
"""The form of the lines."""
_LACKED: Final[Mapping[int, frozenset[Kind]]] = {
    1: frozenset({"agent", "hook", "human"}),
    2: frozenset(),
}
"""By form, the kinds of questions that were not separate steps when it was written."""
_KINDS: Final = frozenset(get_args(Kind))
_RECORD: Final = "record it again with `--record`"


@frozen
class Failure:
    """An error that was the answer.

    Args:
        kind: Its class.
        message: What went wrong.
        hint: What to do about it, or None.
    """

    kind: str
    message: str
    hint: str | None = None


@frozen
class Entry:
    """One question and its answer.

    Args:
        key: Where it was asked.
        asked: The question.
        gave: The answer.
        failure: The error that was the answer, or None.
        unfinished: Whether it was cancelled before an answer came.
    """

    key: Key
    asked: JsonValue = None
    gave: JsonValue = None
    failure: Failure | None = None
    unfinished: bool = False


@dataclass(slots=True)
class Cassette:
    """What a file holds.

    Args:
        path: The file, as it is shown.
        parts: Pieces of requests by their digest.
        entries: Questions and answers by their place.
        complete: Whether the run came to its end.
        lacks: Kinds of questions that are not in it, since its form is older than they are.
    """

    path: str
    parts: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    entries: dict[Key, Entry] = field(default_factory=dict[Key, Entry])
    complete: bool = False
    lacks: frozenset[Kind] = frozenset()


def read_cassette(path: Path, shown: str | None = None) -> Cassette:
    """Read a recording.

    Args:
        path: The file.
        shown: What it is called in messages; None is the path.

    Raises:
        RunError: It cannot be read, or a line before the last is not a line of a recording.
    """
    shown = str(path) if shown is None else shown
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = os_reason(error)
        raise RunError(f"the recording `{shown}` cannot be read: {reason}", hint=_RECORD) from error
    lines = data.split(b"\n")
    torn = lines.pop()
    cassette = Cassette(shown)
    for number, line in enumerate(lines, 1):
        try:
            value = parse_json(line.decode())
            if not isinstance(value, Mapping):
                raise ValueError("it holds no object")  # noqa: TRY004
            _take(cassette, number, value)
        except (ValueError, KeyError, TypeError, JsonTextError) as error:
            reason = f"has no `{error.args[0]}`" if isinstance(error, KeyError) else str(error)
            reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else reason
            message = f"line {number} of the recording `{shown}` cannot be used: {reason}"
            raise RunError(message, hint=_RECORD) from error
    if not lines:
        what = "is empty" if not torn else "holds no whole line"
        raise RunError(f"the recording `{shown}` {what}", hint=_RECORD)
    return cassette


def _take(cassette: Cassette, number: int, line: JsonObject) -> None:
    if number == 1:
        version = line["cassette"]
        if not isinstance(version, int) or version not in _LACKED:
            raise ValueError(f"its format is {version!r}, and this version reads {VERSION}")
        cassette.lacks = _LACKED[version]
    elif "part" in line:
        cassette.parts[str(line["part"])] = line["value"]
    elif "end" in line:
        cassette.complete = True
    else:
        entry = _entry(line)
        cassette.entries[entry.key] = entry


def _entry(line: JsonObject) -> Entry:
    kind, number = line["kind"], line.get("number", 1)
    if kind not in _KINDS or not isinstance(number, int):
        raise ValueError(f"it has an entry of kind {kind!r} and number {number!r}")
    key = Key(str(line.get("turn", "")), cast("Kind", kind), str(line.get("name", "")), number)
    error = line.get("error")
    failure = None
    if isinstance(error, Mapping):
        hint = error.get("hint")
        failure = Failure(
            str(error["kind"]), str(error["message"]), None if hint is None else str(hint)
        )
    elif "gave" not in line and "unfinished" not in line:
        raise KeyError("gave")
    unfinished = line.get("unfinished") is True
    return Entry(key, line.get("asked"), line.get("gave"), failure, unfinished)


class CassetteWriter:
    """Writes a recording, line by line; a file that is there is replaced.

    Args:
        path: The file.
        head: The fields of the first line other than the version of the form.

    Raises:
        RunError: It cannot be written.
    """

    def __init__(self, path: Path, head: JsonObject) -> None:
        self._path = path
        self._file: int | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._refusal(error) from error
        self._write({"cassette": VERSION, **head})

    def part(self, digest: str, value: JsonValue) -> None:
        """Write a piece of requests.

        Raises:
            RunError: It cannot be written.
        """
        self._write({"part": digest, "value": value})

    def entry(self, entry: Entry) -> None:
        """Write a question and its answer.

        Raises:
            RunError: It cannot be written.
        """
        key = entry.key
        line: dict[str, JsonValue] = {"kind": key.kind}
        if key.turn:
            line["turn"] = key.turn
        if key.name:
            line["name"] = key.name
        if key.number != 1:
            line["number"] = key.number
        if entry.asked is not None:
            line["asked"] = entry.asked
        failure = entry.failure
        if failure is not None:
            line["error"] = {"kind": failure.kind, "message": failure.message}
            if failure.hint is not None:
                line["error"] = {**line["error"], "hint": failure.hint}
        elif entry.unfinished:
            line["unfinished"] = True
        else:
            line["gave"] = entry.gave
        self._write(line)

    def close(self, *, complete: bool = True) -> None:
        """Write that the run is over, if it is, and close the file; safe to call twice."""
        if self._file is None:
            return
        try:
            if complete:
                self._write({"end": True})
        finally:
            os.close(self._file)
            self._file = None

    def _write(self, line: JsonObject) -> None:
        if self._file is None:
            return
        data = write_json(line).encode("utf-8") + b"\n"
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> RunError:
        reason = os_reason(error)
        return RunError(f"the recording `{self._path}` cannot be written: {reason}")


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
        raise RunError(f"there is no recording to read the part `{digest}` from")

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
