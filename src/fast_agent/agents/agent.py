"""Agent: what can be sent a message, whatever its type."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload

from fast_agent.errors import RunError
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from fast_agent.agents.events import Event, Listener
    from fast_agent.agents.history.memory import Memory
    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import SteeringMessage, TurnContext, TurnResult
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.history import History
    from fast_agent.messages.message import Content, ToolResult
    from fast_agent.models.model import ToolSpec, Usage
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.sessions.journal import Journal
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human

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
    def conversation(self) -> Transcript:
        """What it remembers, for another agent to start from in constant time."""
        ...

    @property
    def usage(self) -> Usage:
        """What its own requests and calls used since it was made."""
        ...

    @property
    def tree_usage(self) -> Usage:
        """Its own usage and that of everything it started."""
        ...

    async def generate(
        self,
        message: Message | str,
        *,
        context: TurnContext | None = None,
        output: OutputShape | None = None,
        listener: Listener | None = None,
        skill: SkillCall | None = None,
    ) -> TurnResult:
        """Run one turn; turns of one instance run one after another, in the order they came.

        Args:
            message: The user's message.
            context: Where the turn stands when another agent started it; None at the top.
            output: The shape the answer must have, or None.
            listener: Receives this turn's events, in addition to the context's listener.
            skill: The skill a user called by this message, or None.

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

    async def __call__(self, message: Message | str) -> str:
        """Run one turn and return the answer's text: `await app.writer("hello")`.

        Raises:
            FastAgentError: The turn could not be finished.
        """
        return await self.send(message)

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
        from fast_agent.agents.output import shape_of

        output = cast("OutputShape", shape_of(shape))
        result = await self.generate(message, output=output)
        if result.stop_reason == "maxIterations":
            msg = f"agent `{self.name}` stopped before it gave a structured answer"
            raise RunError(msg, hint="raise `request_params.max_iterations`")
        return result.structured

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools it can call, as its model sees them.

        Raises:
            RunError: It has no tools, as workflows have none.
            FastAgentError: One of its servers cannot be reached.
        """
        ...

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject | None = None,
        *,
        human: Human | None = None,
    ) -> ToolResult:
        """Call one of its tools as its model would; hooks and permissions apply.

        Args:
            name: The tool's name, as listed by `list_tools`.
            arguments: JSON object of its arguments.
            human: Asks the user, for a tool that asks; None is the program's.

        Returns:
            The result; what goes wrong in the tool is an error result.

        Raises:
            RunError: There is no such tool, or it is an agent: use `AgentApp.call` for those.
            FastAgentError: One of its servers cannot be reached.
        """
        ...

    async def stream(self, message: Message | str) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events as they happen, those of agents it starts among them.

        Leaving the loop early cancels the turn: close the generator (`contextlib.aclosing`), or
        leave that to the event loop.

        Args:
            message: The user's message.

        Raises:
            FastAgentError: The turn could not be finished; raised after its last event.
        """
        import asyncio
        from collections import deque

        from anyio import CancelScope

        events: deque[Event] = deque()
        more = asyncio.Event()

        def on_event(event: Event) -> None:
            events.append(event)
            more.set()

        # A separate task: a task group must not be left open while a generator waits.
        turn = asyncio.ensure_future(self.generate(message, listener=on_event))
        turn.add_done_callback(lambda _: more.set())
        try:
            while events or not turn.done():
                if not events:
                    more.clear()
                    await more.wait()
                while events:
                    yield events.popleft()
            turn.result()
        finally:
            if not turn.done():
                turn.cancel()
                with CancelScope(shield=True):
                    await asyncio.wait((turn,))

    async def stream_text(self, message: Message | str) -> AsyncGenerator[str, None]:
        """Run one turn and yield the text of its answers piece by piece.

        What the agents it starts say is left out; a workflow's answer comes as one piece.

        Args:
            message: The user's message.

        Raises:
            FastAgentError: The turn could not be finished; raised after the last piece.
        """
        from contextlib import aclosing

        from fast_agent.agents.events import TextStreamed, TurnFinished

        streamed = False
        async with aclosing(self.stream(message)) as events:
            async for event in events:
                if event.origin.agent != self.name or event.origin.parent_call_id is not None:
                    continue
                if isinstance(event, TextStreamed):
                    streamed = True
                    yield event.text
                elif isinstance(event, TurnFinished) and event.message and not streamed:
                    yield event.message.text

    async def with_resource(self, text: str, server: str, uri: str) -> str:
        """Run one turn with a resource of a server next to the text; return the answer's text.

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

    def steer(self, message: Message | str) -> SteeringMessage:
        """Send a message into the turn that is running.

        The turn takes it after the results of the running calls, before its next model request, as
        a user message of the same turn. No call is skipped or cancelled. A workflow hands it to the
        member that is running.

        Args:
            message: The user's message.

        Returns:
            The message, with whether it was taken. One that comes too late is not sent.

        Raises:
            RunError: No turn is running, or several members of a workflow are.
        """
        ...

    def clear(self, *, all: bool = False) -> None:  # noqa: A002 (the word of the command)
        """Forget; templates stay unless `all`. Await `barrier` before reporting it."""
        ...

    def load_history(self, messages: Iterable[Message]) -> None:
        """Replace what it remembers by `messages`; those marked as templates stay so.

        Await `barrier` before reporting it.

        Raises:
            RunError: Something else than a message is among them.
        """
        ...

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what it remembers.

        Raises:
            SessionError: Some of it cannot be written; that is tried again with the next turn.
        """
        ...

    def add_external(self, messages: Sequence[Message]) -> None:
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
            journal: The journal; attached again, it is read again, as after a session was rewound.

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

    def take_over_from(self, other: Agent) -> None:
        """Take the place of another instance: remember what it does, and wait for its turns.

        Args:
            other: An instance that is asked nothing more; a turn of it may still be under way.
        """
        ...

    async def aclose(self) -> None:
        """Release what the instance holds; safe to call twice."""
        ...
