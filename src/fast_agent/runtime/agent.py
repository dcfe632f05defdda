"""Agent: what can be sent a message; and the agent of type `agent`, which asks a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload

from fast_agent.errors import RunError
from fast_agent.messages.message import Message
from fast_agent.runtime.budget import Meter
from fast_agent.runtime.events import fan_out
from fast_agent.runtime.memory import Memory
from fast_agent.runtime.output import shape_of
from fast_agent.runtime.scope import TOP
from fast_agent.runtime.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.content import Content
    from fast_agent.messages.history import History
    from fast_agent.models.tape import Tape
    from fast_agent.models.usage import Usage
    from fast_agent.runtime.conversation import Conversation
    from fast_agent.runtime.events import Listener
    from fast_agent.runtime.ids import NewId
    from fast_agent.runtime.journal import Journal
    from fast_agent.runtime.output import OutputShape
    from fast_agent.runtime.scope import Scope
    from fast_agent.runtime.turn_setup import TurnResult, TurnSetup
    from fast_agent.text.json_value import JsonObject, JsonValue

T = TypeVar("T")


class Agent(Protocol):
    """A live instance of a card, whatever its type.

    Every type subclasses it for `send` and `structured`, which go through `generate`.
    """

    @property
    def name(self) -> str:
        """The card's name."""
        ...

    @property
    def config(self) -> AgentConfig:
        """What it was made from."""
        ...

    @property
    def history(self) -> History:
        """What it remembers, up to the last turn that ended."""
        ...

    @property
    def conversation(self) -> Conversation:
        """What it remembers, for another agent to start from in constant time."""
        ...

    @property
    def usage(self) -> Usage:
        """What its own requests and calls used since it was made."""
        ...

    @property
    def tree_usage(self) -> Usage:
        """The same with everything it started."""
        ...

    async def generate(
        self,
        message: Message | str,
        *,
        scope: Scope | None = None,
        output: OutputShape | None = None,
        listener: Listener | None = None,
    ) -> TurnResult:
        """Run one turn; turns of one instance run one after another, in the order they came.

        Args:
            message: The user's message.
            scope: Where the turn stands when another agent started it; None at the top.
            output: The shape the answer must have, or None.
            listener: Hears of this turn's events, besides the scope's listener.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        ...

    async def send(self, message: Message | str) -> str:
        """Run one turn and return the answer's text.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        return (await self.generate(message)).message.text

    @overload
    async def structured(self, message: Message | str, shape: type[T]) -> T: ...
    @overload
    async def structured(self, message: Message | str, shape: JsonObject) -> JsonValue: ...
    async def structured(self, message: Message | str, shape: type[T] | JsonObject) -> object:
        """Run one turn whose answer has a given shape, and return the value.

        A wrong answer is sent back once with what is wrong about it.

        Args:
            message: The user's message.
            shape: A pydantic model, dataclass, TypedDict or other type, or a JSON Schema.

        Returns:
            A value of that type, or the JSON value.

        Raises:
            RunError: The shape is unusable, or the second answer was wrong too.
            FastAgentError: The turn could not be finished.
        """
        output = cast("OutputShape", shape_of(shape))
        result = await self.generate(message, output=output)
        if result.stop_reason == "maxIterations":
            msg = f"agent `{self.name}` stopped before it gave a structured answer"
            raise RunError(msg, hint="raise `request_params.max_iterations`")
        return result.structured

    async def with_resource(self, text: str, server: str, uri: str) -> str:
        """Run one turn with a resource of a server beside the text; return the answer's text.

        Args:
            text: The user's text.
            server: One of the card's servers.
            uri: The resource on it.

        Raises:
            FastAgentError: The resource cannot be read, or the turn could not be finished.
        """
        content = await self.read_resource(server, uri)
        message = Message.user(text)
        return await self.send(replace(message, content=message.content + content))

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of the card's servers.

        Raises:
            FastAgentError: The card has no such server, or the resource cannot be read.
        """
        ...

    def clear(self, *, all: bool = False) -> None:  # noqa: A002 (the word of the command)
        """Forget; templates stay unless `all`."""
        ...

    def load_history(self, messages: Iterable[Message]) -> None:
        """Put `messages` in the place of what it remembers."""
        ...

    def adopt(self, messages: Sequence[Message]) -> None:
        """Add another agent's messages to what it remembers, as one block.

        Never waits: while a turn of this instance runs, they land when it has ended.

        Args:
            messages: A closed stretch of a conversation: the user speaks first, and every call has
                its result. Call ids in use here are replaced.
        """
        ...

    def attach(self, journal: Journal) -> None:
        """Take up what a journal holds of it, and have its history written there from now on.

        Args:
            journal: The journal; attached again, it is read anew, as after a session was rewound.

        Raises:
            SessionError: It cannot be read.
        """
        ...

    @property
    def memory(self) -> Memory:
        """What it keeps from turn to turn."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no turn of it runs or waits to."""
        ...

    def follow(self, other: Agent) -> None:
        """Take the place of another instance: remember what it does, and wait for its turns.

        Args:
            other: An instance that is asked nothing more; a turn of it may still be under way.
        """
        ...

    async def aclose(self) -> None:
        """Release what the instance holds; safe to call twice."""
        ...


class LlmAgent(Agent):
    """An agent that asks a model, of type `agent`.

    Args:
        config: What it is made from.
        setup: What all its turns share.
        templates: Messages its history starts with.
        new_id: Gives turn ids.
        scope: Where its turns stand unless they are told otherwise.
        read_resource: Reads a resource of one of its servers: (server, uri) to content blocks.
        tape: Told which turn what is asked outside belongs to, or None.
    """

    def __init__(
        self,
        config: AgentConfig,
        setup: TurnSetup,
        *,
        templates: Iterable[Message] = (),
        new_id: NewId,
        scope: Scope = TOP,
        read_resource: Callable[[str, str], Awaitable[tuple[Content, ...]]] | None = None,
        tape: Tape | None = None,
    ) -> None:
        self._config = config
        self._setup = setup
        self._new_id = new_id
        self._scope = scope
        self._read_resource = read_resource
        self._tape = tape
        self._memory = Memory(templates, remembers=config.use_history is not False)
        limits = setup.params.usage_limits
        self._meters = Meter(config.name), Meter(config.name, limits)
        self._turns = 0
        self._closed = False

    @property
    def name(self) -> str:
        """The card's name."""
        return self._config.name

    @property
    def config(self) -> AgentConfig:
        """What it was made from."""
        return self._config

    @property
    def model_name(self) -> str:
        """The spec of its model."""
        return self._setup.model.name

    @property
    def setup(self) -> TurnSetup:
        """What all its turns share: model, tools, system prompt."""
        return self._setup

    @property
    def history(self) -> History:
        """What it remembers, up to the last turn that ended."""
        return self._memory.history

    @property
    def conversation(self) -> Conversation:
        """What it remembers; see `Agent.conversation`."""
        return self._memory.conversation

    @property
    def usage(self) -> Usage:
        """What its own requests and calls used since it was made."""
        return self._meters[0].usage

    @property
    def tree_usage(self) -> Usage:
        """The same with everything it started."""
        return self._meters[1].usage

    async def generate(
        self,
        message: Message | str,
        *,
        scope: Scope | None = None,
        output: OutputShape | None = None,
        listener: Listener | None = None,
    ) -> TurnResult:
        """Run one turn; see `Agent.generate`."""
        if isinstance(message, str):
            message = Message.user(message)
        elif message.role != "user":
            raise RunError("a turn starts with a user message")
        scope = self._scope if scope is None else scope.within(self._scope)
        if listener is not None:
            scope = replace(scope, listener=fan_out(scope.listener, listener))
        memory = self._memory
        if memory.lock.is_around:
            msg = f"agent `{self.name}` was sent a message from inside its own turn"
            raise RunError(msg, hint="it would wait for itself; use another agent or a clone")
        self._turns += 1
        try:
            if self._tape is None:
                async with memory.lock:
                    return await self._run(message, scope, output)
            with self._tape.places.turn(self.name, message, scope.parent_call_id):
                await self._tape.enter(self.name)
                async with memory.lock:
                    return await self._run(message, scope, output)
        finally:
            self._turns -= 1

    async def _run(self, message: Message, scope: Scope, output: OutputShape | None) -> TurnResult:
        if self._closed:
            msg = f"agent `{self.name}` is closed"
            raise RunError(msg)
        memory = self._memory
        base, draft = memory.begin()
        turn = Turn(
            self._setup,
            self._new_id(),
            draft,
            lambda kept: memory.keep(base, kept),
            scope,
            self._meters,
            output,
            memory.record,
        )
        try:
            return await turn.run(message)
        finally:
            memory.end()

    async def read_resource(self, server: str, uri: str) -> tuple[Content, ...]:
        """Read a resource of one of the card's servers; see `Agent.read_resource`."""
        if self._read_resource is None:
            msg = f"agent `{self.name}` has no servers to read `{uri}` from"
            raise RunError(msg, hint="list the server under `servers`")
        return await self._read_resource(server, uri)

    def clear(self, *, all: bool = False) -> None:  # noqa: A002 (the word of the command)
        """Forget; templates stay unless `all`."""
        self._memory.clear(everything=all)

    def load_history(self, messages: Iterable[Message]) -> None:
        """Put `messages` in the place of what it remembers; those marked as templates stay so."""
        self._memory.load(messages)

    def adopt(self, messages: Sequence[Message]) -> None:
        """Add another agent's messages; see `Agent.adopt`."""
        self._memory.adopt(messages)

    def attach(self, journal: Journal) -> None:
        """Take up what a journal holds of it; see `Agent.attach`."""
        self._memory.attach(journal, self.name)

    @property
    def memory(self) -> Memory:
        """What it keeps from turn to turn."""
        return self._memory

    @property
    def idle(self) -> bool:
        """Whether no turn of it runs or waits to."""
        return self._turns == 0

    def follow(self, other: Agent) -> None:
        """Take the place of another instance; see `Agent.follow`."""
        memory = other.memory
        memory.remembers = self._memory.remembers
        self._memory = memory

    async def aclose(self) -> None:
        """Release what the instance holds; safe to call twice."""
        if not self._closed:
            self._closed = True
            await self._setup.model.aclose()
