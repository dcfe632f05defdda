"""Steps: what everything that comes from outside goes through, and the place of each question.

A run asks the outside for answers: of models, of tools, of servers and pages, of the clock. Each
question has a place: the turn it is asked in, its kind and name, and its number among the same
questions of that turn. Places depend on what the run does, never on which task is faster. So a
recording answers every replay whatever the order its tasks run in, and a run that was killed goes
on in another process where it stopped.

Who carries a run is found in the context of its turn, never bound to an agent or a runtime: one
runtime carries many runs at once. Without a carrier, `here()` is a silent place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from fast_agent.errors import ToolError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    from anyio import CancelScope

    from fast_agent.messages.message import Message
    from fast_agent.steps.parts import Parts, StepRedactor
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")

Kind: TypeAlias = Literal[
    "model",
    "tool",
    "agent",
    "hook",
    "human",
    "read",
    "write",
    "time",
    "order",
    "clock",
    "id",
    "fact",
]
"""What is asked: a model, a tool, an agent called as a tool, a hook, a user, a resource or server,
a file, whether a time-out expired, whose turn it is, the clock, an id, the machine."""

Work: TypeAlias = "Callable[[], Awaitable[T]]"
"""Asks the outside itself."""

TURN_SEPARATOR: Final = "/"


class Key(NamedTuple):
    """The place of one question.

    Args:
        turn: The path of the turn; empty outside of turns.
        kind: What is asked.
        name: Which one, such as the id of a tool call or an address.
        number: Which of the same questions of the turn it is, from 1.
    """

    turn: str
    kind: Kind
    name: str
    number: int

    @property
    def agent(self) -> str:
        """The agent whose turn it is; empty outside of turns."""
        return agent_of(self.turn)

    @property
    def inside(self) -> str:
        """The path of the place inside of this step, for what it asks itself.

        An agent that is called as a tool asks at the place of the call.
        """
        if self.kind == "agent":
            return self.turn
        return f"{self.turn}/{self.kind} {self.name.replace('/', '%2F')}.{self.number}"


def agent_of(turn: str) -> str:
    """Return the name of the agent of a turn's path."""
    last = turn.rpartition(TURN_SEPARATOR)[2]
    return last.partition(":")[0].partition("@")[0].replace("%2F", "/")


@frozen
class Codec(Generic[T]):
    """How an answer is written as JSON and read back."""

    write: Callable[[T], JsonValue]
    read: Callable[[JsonValue], T]


@frozen
class Step:
    """One question to the outside, described so that any process could ask it.

    Args:
        kind: What is asked.
        name: Which one, such as the id of a tool call or an address.
        asked: The question as JSON; long parts are named by their digest.
        agent: The agent that asks; empty where it does not matter.
        repeatable: Whether it may be asked again when it is unknown if it was answered.
        is_local: Whether any process of the run can ask it without a server, such as a function.
        asks_in_steps: Whether all it does are steps of its own, such as the turns of another agent:
            who keeps those may ask it again.
        asks_first: Whether these are a question of whether it may be done, and then one step that
            does it.
    """

    kind: Kind
    name: str
    asked: JsonValue = None
    agent: str = ""
    repeatable: bool = True
    is_local: bool = False
    asks_in_steps: bool = False
    asks_first: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return title_of(self.kind, self.name, self.asked)


def asked_of_tool(name: str, arguments: JsonObject) -> JsonObject:
    """Return what a tool is asked, as its step has it."""
    return {"tool": name, "arguments": arguments}


def title_of(kind: Kind, name: str, asked: JsonValue) -> str:
    """Return what messages call a step: a tool by its name, not by the id of the call."""
    tool = asked.get("tool") if kind == "tool" and isinstance(asked, dict) else None
    return str(tool or name or kind)


def interrupted(title: str) -> ToolError:
    """Return the error of a call that was cut off, and may not be repeated."""
    return ToolError(f"`{title}` was interrupted and is not repeated")


class Steps(Protocol):
    """Carries one run: asks the outside and keeps the answers, or returns those kept before."""

    @property
    def places(self) -> Places:
        """The places of the run."""
        ...

    @property
    def top(self) -> Place:
        """The place outside of all turns."""
        ...

    @property
    def parts(self) -> Parts:
        """The pieces questions are made of."""
        ...

    @property
    def replays(self) -> bool:
        """Whether all answers were recorded, and the outside is never asked."""
        ...

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Answer a question.

        Args:
            step: The question. Another one than the recorded question of its place is an error.
            work: Asks the outside.
            codec: The form of the answer.

        Raises:
            RunError: The question is not the recorded one, or the answer cannot be kept.
            FastAgentError: What `work` raises, or raised when it was recorded.
        """
        ...

    async def enter(self, agent: str) -> None:
        """Start a turn; when answers are recorded ones, after the turns that started before it.

        An agent that remembers is asked in the order that was recorded, for its requests depend
        on it.

        Args:
            agent: The agent's name.
        """
        ...

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        """Enter a turn: what is asked inside is asked there.

        Args:
            agent: The agent's name.
            message: The message the turn starts with.
            call_id: The tool call it answers, the turn it is a part of, or None.
        """
        ...

    async def wait_for(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Wait for a user's answer, which may come in a later life of the run; see `ask`.

        Args:
            step: The question, of kind `human`.
            work: Asks a user of this process.
            codec: The form of the answer.
        """
        ...

    def deadline(self, name: str, seconds: float) -> AbstractContextManager[CancelScope]:
        """Bound what is done inside; whether it took too long is an answer like any other.

        Args:
            name: What is bounded.
            seconds: How long it may take; the scope's `cancelled_caught` says whether it did not
                end in time.
        """
        ...

    def check(self) -> None:
        """Check that the questions so far are the recorded ones.

        Raises:
            RunError: One was not; the first difference, wherever it was raised before.
        """
        ...

    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer.

        Raises:
            RunError: There is none of that digest.
        """
        ...

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Answer a question that cannot fail or wait, such as what time it is."""
        ...

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what is true of the machine for the whole run.

        Args:
            name: What is asked.
            value: Finds it out.
        """
        ...

    def new_id(self, fresh: Callable[[], str]) -> str:
        """Return the id of a turn that starts here.

        Args:
            fresh: Makes an id.
        """
        ...

    def former_trace(self, current: str) -> str | None:
        """Return the trace of the first life of a run that continues; None in its first.

        Args:
            current: The trace of this life, as a `traceparent`.
        """
        ...


@dataclass(slots=True)
class Place:
    """Where the running code stands in a run, and what it has asked so far.

    Args:
        steps: Who carries the run.
        path: The path of the turn; empty outside of turns.
        silent: Whether questions here are not steps: the run has no carrier, or what is asked is
            part of a larger step.
        counts: How often each thing was asked here.
    """

    steps: Steps
    path: str
    silent: bool = False
    counts: dict[object, int] = field(default_factory=dict[object, int])

    def number(self, thing: object) -> int:
        """Count a thing asked here, from 1."""
        self.counts[thing] = count = self.counts.get(thing, 0) + 1
        return count


class Places:
    """The places of one run.

    Args:
        steps: Who carries it.
        parts: Names messages.
        silent: Whether nothing in it is a step.

    Attributes:
        top: The place outside of all turns.
        turn_ids: Ids of turns, by which a workflow's members name what started them.
        answers: Answers that are requested once a run, by the first turn that needs them.
        scripts: Scripts of models as the run uses them; None where runs continue one another's.
    """

    def __init__(self, steps: Steps, parts: Parts, *, silent: bool = False) -> None:
        self._parts = parts
        self.top = Place(steps, "", silent)
        self.turn_ids: set[str] = set()
        self.answers: dict[str, object] = {}
        self.scripts: dict[str, object] | None = {}

    def key(self, kind: Kind, name: str) -> Key:
        """Return the key of a question asked now."""
        place = self.here()
        return Key(place.path, kind, name, place.number((kind, name)))

    def here(self) -> Place:
        """Return the place of the running code in this run; the top where it stands in none."""
        place = _here.get()
        return place if place.steps is self.top.steps else self.top

    @contextmanager
    def turn(self, agent: str, message: Message, call_id: str | None) -> Generator[None]:
        """Enter a turn: what is asked inside is asked there."""
        place = self.here()
        called = "" if call_id is None or call_id in self.turn_ids else f"@{call_id}"
        name = f"{agent}{called}:{self._parts.digest_of_message(message)[:8]}".replace("/", "%2F")
        number = place.number(("turn", name))
        path = name if number == 1 else f"{name}.{number}"
        if place.path:
            path = f"{place.path}{TURN_SEPARATOR}{path}"
        with entered(Place(place.steps, path, place.silent)):
            yield

    def outside(self) -> AbstractContextManager[None]:
        """Leave the turn: questions inside are the same whichever turn comes first."""
        place = self.here()
        return entered(Place(place.steps, "", silent=True) if place.silent else self.top)

    def silence(self) -> AbstractContextManager[None]:
        """Make what is asked inside part of the step around it."""
        place = self.here()
        return entered(Place(place.steps, place.path, silent=True))

    def inside(self, key: Key) -> AbstractContextManager[None]:
        """Enter a step: questions inside have their own places."""
        place = self.here()
        if key.inside == place.path:
            return _SAME_PLACE
        return entered(Place(place.steps, key.inside, place.silent))


@contextmanager
def entered(place: Place) -> Generator[None]:
    """Stand at a place."""
    token = _here.set(place)
    try:
        yield
    finally:
        _here.reset(token)


_was_kept: ContextVar[bool] = ContextVar("whether the last answer was kept", default=False)


def note_kept(*, is_kept: bool) -> None:
    """Note whether the last answer in this task is of a former life of the run, or a recording."""
    _was_kept.set(is_kept)


def was_kept() -> bool:
    """Return what was noted last."""
    return _was_kept.get()


def here() -> Place:
    """Return the place of the running code, with the steps of its run."""
    return _here.get()


def start_at(place: Place) -> Place:
    """Stand at a place from now on, in this context; returns the place before it.

    For a run that is not a block of code: `entered` is for one that is.
    """
    before = _here.get()
    _here.set(place)
    return before


class NullSteps:
    """Steps of a run without a carrier: every question is asked, and nothing is stored."""

    @property
    def replays(self) -> bool:
        """False: the outside is asked."""
        return False

    @property
    def parts(self) -> Parts:
        """Pieces that are not stored."""
        from fast_agent.steps.parts import Parts, StepRedactor

        return Parts(StepRedactor(), lambda _digest, _value: None)

    @property
    def places(self) -> Places:
        """Places that are not recorded."""
        return Places(self, self.parts, silent=True)

    @property
    def top(self) -> Place:
        """The place of all code that belongs to no run."""
        return _NOWHERE

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask the outside."""
        del step, codec
        return await work()

    async def enter(self, agent: str) -> None:
        """Start the turn."""

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        """Stay where nothing is recorded; leave the places of a run around this one."""
        del agent, message, call_id
        return _SAME_PLACE if _here.get().silent else entered(_NOWHERE)

    async def wait_for(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask the user."""
        del step, codec
        return await work()

    def deadline(self, name: str, seconds: float) -> AbstractContextManager[CancelScope]:
        """Cancel what is inside after a time."""
        from anyio import move_on_after

        del name
        return move_on_after(seconds)

    def check(self) -> None:
        """Accept every run."""

    def part(self, digest: str) -> JsonValue:
        """Return the digest itself: there are no pieces."""
        return digest

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Return what there is now."""
        del kind, name
        return value()

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what is true now."""
        del name
        return value()

    def new_id(self, fresh: Callable[[], str]) -> str:
        """Return a fresh id."""
        return fresh()

    def former_trace(self, current: str) -> str | None:
        """Return None: there is one life."""
        del current


NULL_STEPS: Final = NullSteps()
"""The steps of every run that is neither recorded, replayed nor durable."""

_NOWHERE: Final = Place(NULL_STEPS, "", silent=True)
_SAME_PLACE: Final = nullcontext()
_here: ContextVar[Place] = ContextVar("place of the running code in its run", default=_NOWHERE)


class PlacedSteps(ABC):
    """Steps of a run whose questions have places; a carrier writes `ask` and `note`.

    Whether a time-out expired is noted once, in the first life of the run. In later lives the
    scope is cancelled at the first question that has no answer, whatever the clock says.

    Args:
        redactor: What must not be written.
        keep: Called once with each new piece of a question and its digest.
        run: The run's id, of which the ids of its turns are made; None notes a new id each.
    """

    def __init__(
        self,
        redactor: StepRedactor,
        keep: Callable[[str, JsonValue], None],
        run: str | None = None,
    ) -> None:
        from fast_agent.steps.parts import Parts

        self._redactor = redactor
        self._run_id = run
        self.parts = Parts(redactor, keep)
        self.places = Places(self, self.parts)

    @property
    def top(self) -> Place:
        """The place outside of all turns."""
        return self.places.top

    def former_trace(self, current: str) -> str | None:
        """Return None where traces are not kept; see `Steps.former_trace`."""
        del current
        return None

    @property
    def replays(self) -> bool:
        """False: what is not answered yet is asked."""
        return False

    @abstractmethod
    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Answer a question; see `Steps.ask`."""
        ...

    @abstractmethod
    async def enter(self, agent: str) -> None:
        """Start a turn; see `Steps.enter`."""
        ...

    @abstractmethod
    def part(self, digest: str) -> JsonValue:
        """Return a piece of an answer; see `Steps.part`."""
        ...

    @abstractmethod
    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Answer a question that cannot fail or wait; see `Steps.note`."""
        ...

    @abstractmethod
    def noted_late(self, key: Key) -> bool | None:
        """Return whether a time-out expired in a former life; None where that is not known."""
        ...

    @abstractmethod
    def note_late(self, key: Key, *, is_late: bool) -> None:
        """Keep whether a time-out expired."""
        ...

    async def wait_for(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        """Ask a user of this process; see `Steps.wait_for`."""
        return await self.ask(step, work, codec)

    def turn(
        self, agent: str, message: Message, call_id: str | None
    ) -> AbstractContextManager[None]:
        """Enter a turn; see `Steps.turn`."""
        return self.places.turn(agent, message, call_id)

    def deadline(self, name: str, seconds: float) -> AbstractContextManager[CancelScope]:
        """Bound what is done inside; see `Steps.deadline`."""
        return self._bounded(name, seconds)

    @contextmanager
    def _bounded(self, name: str, seconds: float) -> Generator[CancelScope]:
        from anyio import CancelScope, current_time

        key = self.places.key("time", name)
        was_late = self.noted_late(key)
        if was_late is None:
            with CancelScope(deadline=current_time() + seconds) as scope:
                yield scope
            self.note_late(key, is_late=scope.cancelled_caught)
            return
        with CancelScope() as scope:
            if not was_late:
                yield scope
                return
            token = _late.set(scope)
            try:
                yield scope
            finally:
                _late.reset(token)

    async def stop_if_late(self) -> None:
        """Cancel at a question without an answer, where a time-out of a former life expired."""
        scope = _late.get()
        if scope is not None:
            from anyio import sleep_forever

            scope.cancel()
            await sleep_forever()

    @abstractmethod
    def check(self) -> None:
        """Check that the questions so far are the recorded ones; see `Steps.check`."""
        ...

    def fact(self, name: str, value: Callable[[], str]) -> str:
        """Return what is true of the machine; see `Steps.fact`."""
        with self.places.outside():
            return self.note("fact", name, value)

    def new_id(self, fresh: Callable[[], str]) -> str:
        """Return the id of a turn; see `Steps.new_id`."""
        if self._run_id is None:
            made = self.note("id", "turn", fresh)
        else:
            key = self.places.key("id", "turn")
            made = turn_id(self._run_id, key.turn, key.number)
        self.places.turn_ids.add(made)
        return made


def turn_id(run: str, turn: str, number: int = 1) -> str:
    """Return the id of the turn at a place: the same in every life of a run, and in no other."""
    text = "\0".join((run, turn, str(number)))
    return f"turn-{sha256(text.encode()).hexdigest()[:20]}"


_late: ContextVar[CancelScope | None] = ContextVar("time-out that expired before", default=None)


def deadline(name: str, seconds: float) -> AbstractContextManager[CancelScope]:
    """Bound steps of the run the code runs in; see `Steps.deadline`.

    What is a part of one step, such as the connection of a page, is bounded by `move_on_after`: it
    is repeated as a whole, and its second try needs its time.
    """
    place = _here.get()
    if place.silent:
        return NULL_STEPS.deadline(name, seconds)
    return place.steps.deadline(name, seconds)


def text_by_digest(steps: Steps) -> Codec[str]:
    """Return the form of a long text: its digest, the text itself being a piece."""
    return Codec(steps.parts.digest, lambda value: str(steps.part(str(value))))
