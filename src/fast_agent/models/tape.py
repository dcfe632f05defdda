"""Tape: what everything that comes from outside goes through while a run is recorded or replayed.

A run asks the world for answers: of models, of tools, of servers and pages, of the clock. Each
question has a place: the turn it is asked in, its kind and name, and its number among the same
questions of that turn. Places depend on what the run does, never on which task is faster, so that
a recording answers every replay whatever the order its tasks run in.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from fast_agent.messages.message import Message
    from fast_agent.models.cassette_parts import Parts
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

Kind: TypeAlias = Literal["model", "tool", "read", "write", "order", "clock", "id", "fact"]
"""What is asked: a model, a tool, a resource or server, a file, whose turn it is, the clock, an id,
the machine."""

Work: TypeAlias = "Callable[[], Awaitable[T]]"
"""Asks the world itself."""

TURN_SEPARATOR = "/"


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


def agent_of(turn: str) -> str:
    """Name the agent of a turn's path."""
    last = turn.rpartition(TURN_SEPARATOR)[2]
    return last.partition(":")[0].partition("@")[0].replace("%2F", "/")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How an answer is written as JSON and read back."""

    write: Callable[[T], JsonValue]
    read: Callable[[JsonValue], T]


@dataclass(slots=True)
class Place:
    """Where the running code stands, with what it asked so far.

    Args:
        tape: The tape it belongs to.
        path: The path of the turn; empty outside of turns.
        silent: Whether what is asked here is part of a larger question that is on the tape.
    """

    tape: object
    path: str
    silent: bool = False
    counts: dict[object, int] = field(default_factory=dict[object, int])

    def number(self, thing: object) -> int:
        """Count a thing asked here, from 1."""
        self.counts[thing] = count = self.counts.get(thing, 0) + 1
        return count


_here: ContextVar[Place | None] = ContextVar("place on the tape", default=None)


class Places:
    """The places of one tape.

    Args:
        parts: Gives a message its short name.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._top = Place(self, "")
        self.turn_ids: set[str] = set()
        """Ids of turns, by which a workflow's members name what started them."""

    def here(self) -> Place:
        """Give the place of the running code."""
        place = _here.get()
        return self._top if place is None or place.tape is not self else place

    def key(self, kind: Kind, name: str) -> Key:
        """Give the key of a question asked now."""
        place = self.here()
        return Key(place.path, kind, name, place.number((kind, name)))

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
        with self._entered(Place(self, path, place.silent)):
            yield

    @contextmanager
    def outside(self) -> Generator[None]:
        """Leave the turn: what is asked inside is the same whichever turn comes first."""
        place = self.here()
        with self._entered(Place(self, "", silent=True) if place.silent else self._top):
            yield

    @contextmanager
    def silence(self) -> Generator[None]:
        """Leave what is asked inside off the tape."""
        place = self.here()
        with self._entered(Place(self, place.path, silent=True)):
            yield

    @contextmanager
    def _entered(self, place: Place) -> Generator[None]:
        token = _here.set(place)
        try:
            yield
        finally:
            _here.reset(token)


class Tape(Protocol):
    """Records the answers to questions, or gives those of a recording."""

    @property
    def places(self) -> Places:
        """Where questions are asked."""
        ...

    @property
    def parts(self) -> Parts:
        """The pieces questions are made of."""
        ...

    @property
    def replays(self) -> bool:
        """Whether answers come from a recording, and the world is not asked."""
        ...

    async def ask(
        self, kind: Kind, name: str, asked: JsonValue, work: Work[T], codec: Codec[T]
    ) -> T:
        """Answer a question.

        Args:
            kind: What is asked.
            name: Which one.
            asked: The question; a replay that asks another one at this place is refused.
            work: Asks the world.
            codec: The form of the answer.

        Raises:
            RunError: A replay asks what is not recorded, or the recording cannot be written.
            FastAgentError: What `work` raises, or raised when it was recorded.
        """
        ...

    async def enter(self, agent: str) -> None:
        """Begin a turn; in a replay after the turns of the agent that were begun before it.

        An agent that remembers is asked in the order that was recorded, for its requests depend
        on it.

        Args:
            agent: The agent's name.
        """
        ...

    def check(self) -> None:
        """See that a replay has been the recorded run so far.

        Raises:
            RunError: It was not; the first difference, whoever was told of it before.
        """
        ...

    def part(self, digest: str) -> JsonValue:
        """Give a piece of the recording that is replayed.

        Raises:
            RunError: It has none of that name.
        """
        ...

    def note(self, kind: Kind, name: str, value: Callable[[], str]) -> str:
        """Answer a question that cannot fail or wait, such as what time it is."""
        ...
