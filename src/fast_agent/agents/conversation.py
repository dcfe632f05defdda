"""The agents of one conversation: one shared instance per card, created on first use."""

from __future__ import annotations

from asyncio import get_running_loop
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import CancelScope

from fast_agent.agents.budget import Meter
from fast_agent.errors import FastAgentError, RunError
from fast_agent.sessions.cumulative import CumulativeTranscript

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Collection, Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.events import Event, Listener
    from fast_agent.agents.tool_calls import ChildCallBatch
    from fast_agent.agents.turn_context import SharedConversation, TurnContext
    from fast_agent.models.model import Usage
    from fast_agent.sessions.journal import Journal

    MakeShared = Callable[[str, TurnContext], Agent]


class Conversation:
    """The agents of one conversation; a runtime may have many, which share all but memories.

    An agent is made when it is first asked for. Clones, which answer for one caller, are not here;
    they find the conversation in the context of the turn that calls them.

    Args:
        make: Makes the shared instance of a card: (name, context of its turns).
        context: Where turns stand that nothing else started.
        journal: Restores what the agents remembered before, and records what they remember from
            now on; None if the conversation is not saved.
        within: The conversation whose turn they work for, as agents of a smart agent do; None at
            the top.
        tracing: Makes what traces its turns, given the id of its session or an empty one; or None.
        loop: The event loop that its servers and models are used in; None is any.

    Attributes:
        context: The same, with this conversation and its transcript.
        transcript: Everything said in the conversation, turn by turn.
    """

    __slots__ = (
        "__weakref__",
        "_agents",
        "_attach",
        "_closed",
        "_loop",
        "_make",
        "_meter",
        "_within",
        "context",
        "transcript",
    )

    def __init__(
        self,
        make: MakeShared,
        context: TurnContext,
        journal: Journal | None = None,
        *,
        within: SharedConversation | None = None,
        tracing: Callable[[str], Listener] | None = None,
        loop: AbstractEventLoop | None = None,
    ) -> None:
        self._make = make
        self._loop = loop
        self._within = within
        self._agents: dict[str, Agent] = {}
        self._closed = False
        self._meter = Meter("conversation")
        self._attach: Callable[[Agent], None] = _skip_restore
        session_id = ""
        if journal is None:
            kept = CumulativeTranscript()
        else:
            session_id = journal.session_id
            self._meter.count_earlier(journal.used)
            self._attach = partial(_attach, journal)
            kept = journal.transcript
        transcript = kept if context.transcript is None else context.transcript
        self.transcript = transcript
        listener = context.listener
        self.context = replace(
            context,
            listener=listener if tracing is None else _notify_both(listener, tracing(session_id)),
            meters=(self._meter, *context.meters),
            transcript=transcript,
            conversation=self,
        )

    @property
    def conversation(self) -> SharedConversation:
        """The conversation as a whole: this one, or the one it works for."""
        return self if self._within is None else self._within.conversation

    def require_loop(self) -> None:
        """Check that a turn starts in the event loop of its servers and models.

        Raises:
            RunError: It starts in another one, where they would fail or never answer.
        """
        if self._loop is not None and self._loop is not get_running_loop():
            raise RunError(
                "the agents run in another event loop",
                hint="enter `fast.run()` in this loop, or send the message to theirs with"
                " `asyncio.run_coroutine_threadsafe`",
            )

    @property
    def usage(self) -> Usage:
        """What its agents used together, with all they started; also before it was resumed."""
        return self._meter.usage

    @property
    def live(self) -> tuple[str, ...]:
        """The names of the agents that were asked for."""
        return tuple(self._agents)

    def agent(self, name: str) -> Agent:
        """Return the shared instance of a card.

        Args:
            name: The card's name.

        Raises:
            RunError: There is no such card, this version does not run its type, or the conversation
                is closed.
            SessionError: What it remembered cannot be read.
            FastAgentError: The card cannot be run.
        """
        agent = self._agents.get(name)
        if agent is None:
            if self._closed:
                raise RunError(
                    "the agents are closed",
                    hint="send messages before the `async with` block ends; an `AsyncExitStack`"
                    " keeps `fast.run()` open beyond one block",
                )
            agent = self._make(name, self.context)
            self._attach(agent)
            self._agents[name] = agent
        return agent

    def restore(self) -> None:
        """Restore what the journal contains to every agent, as after a rewind.

        Raises:
            SessionError: It cannot be read.
        """
        for agent in self._agents.values():
            self._attach(agent)

    def prepare(self, names: Collection[str]) -> dict[str, Agent]:
        """Make the instances that are to take the place of agents whose cards changed.

        Args:
            names: The agents that changed and still have a card.

        Returns:
            New instances of those that were asked for, by name.

        Raises:
            FastAgentError: A card cannot be run.
        """
        return {name: self._make(name, self.context) for name in self._agents if name in names}

    def take(self, fresh: Mapping[str, Agent], gone: Iterable[str]) -> list[Agent]:
        """Replace old instances by new ones; the old ones receive no more messages.

        The new ones remember what the old ones did, and wait for turns of them to end.

        Args:
            fresh: The new instances, by name.
            gone: Agents that have no card any more.

        Returns:
            The old instances, to be closed when they are idle.
        """
        old = [self._agents.pop(name) for name in gone if name in self._agents]
        for name, follower in fresh.items():
            former = self._agents[name]
            follower.take_over_from(former)
            self._agents[name] = follower
            old.append(former)
        return old

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        problem: FastAgentError | None = None
        with CancelScope(shield=True):
            problem = await self.aclose()
        if problem is not None and exc is None:
            raise problem

    async def aclose(self) -> FastAgentError | None:
        """Close every agent, with its history written; returns the first problem."""
        first: FastAgentError | None = None
        self._closed = True
        agents, self._agents = tuple(self._agents.values()), {}
        for agent in agents:
            try:
                await agent.aclose()
                agent.memory.write_out()
            except FastAgentError as error:
                first = first or error
        return first


def _notify_both(first: Listener, second: Listener) -> Listener:
    def notify(event: Event) -> None:
        first(event)
        second(event)

    return notify


def _skip_restore(agent: Agent) -> None:
    """Give an agent of an unsaved conversation its own history."""


def _attach(journal: Journal, agent: Agent) -> None:
    agent.attach(journal)


def conversation_of(place: ChildCallBatch | TurnContext) -> Conversation:
    """Return the agents of a place in a conversation.

    Raises:
        RunError: There is none: the turn was started outside a runtime.
    """
    if not isinstance(place.conversation, Conversation):
        raise RunError("this turn belongs to no conversation of a runtime")
    return place.conversation
