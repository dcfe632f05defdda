"""The context of a turn: what it inherits from whatever started it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import KW_ONLY, replace
from typing import TYPE_CHECKING, Protocol

from fast_agent.agents.events import log_warnings
from fast_agent.steps.steps import NULL_STEPS, here
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fast_agent.agents.budget import Meter
    from fast_agent.agents.events import Listener
    from fast_agent.agents.steering import Steering
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.journal import Journal
    from fast_agent.steps.steps import Place, Steps
    from fast_agent.tools.human import Human


class SharedConversation(Protocol):
    """A conversation as its turns know it; `conversation_of` returns its agents."""

    @property
    def conversation(self) -> SharedConversation:
        """The whole conversation: this one, or the one whose turn it works for."""
        ...


@frozen
class TurnContext:
    """Context a turn inherits from its caller.

    Args:
        meters: Meters to charge in addition to the turn's and the agent's own.
        listener: Notified of the events of turns.
        depth: How many agents stand above this one.
        parent_call_id: The tool call this turn answers, or the turn of the workflow it is a part
            of; None at the top.
        correlation_id: One id for everything a request set off; None makes the turn's id that id.
        charges: Where calls of server tools are entered while they are open, or None.
        transcript: Where turns are written when they end, or None.
        journal: Where they are recorded as they run, or None.
        conversation: The agents of the conversation the turn belongs to; None outside a runtime.
        human: Asks the user of this conversation, before that of the runtime, or None.
        redact: Hides secrets in the errors of tools; None hides none.
        steering: The messages a user sends into the workflow this turn is a part of, or None.
        steps: Who carries the run the turn belongs to.
        deps: The values the program gave its function tools.
        skill: The skill a person called by the turn's message, or None; for this turn only.
    """

    _: KW_ONLY
    meters: tuple[Meter, ...] = ()
    listener: Listener = log_warnings
    depth: int = 0
    parent_call_id: str | None = None
    correlation_id: str | None = None
    charges: OpenCallMeters | None = None
    transcript: CumulativeTranscript | None = None
    journal: Journal | None = None
    conversation: SharedConversation | None = None
    human: Human | None = None
    redact: Callable[[str], str] | None = None
    steering: Steering | None = None
    steps: Steps = NULL_STEPS
    deps: tuple[object, ...] = ()
    skill: SkillCall | None = None

    def below(
        self,
        turn_id: str,
        meters: tuple[Meter, ...],
        *,
        depth: int = 0,
        parent: str | None = None,
        steering: Steering | None = None,
    ) -> TurnContext:
        """Return the context of what a turn in this one starts.

        Args:
            turn_id: The turn.
            meters: Meters to charge in addition to those charged here.
            depth: How many agents come between.
            parent: What the turns below answer; None is what the turn itself does.
            steering: The messages a user sends into the turns below; None where there are none.
        """
        return TurnContext(
            meters=meters + self.meters,
            listener=self.listener,
            depth=self.depth + depth,
            parent_call_id=self.parent_call_id if parent is None else parent,
            correlation_id=self.correlation_id or turn_id,
            charges=self.charges,
            transcript=self.transcript,
            journal=self.journal,
            conversation=self.conversation,
            human=self.human,
            redact=self.redact,
            steering=steering,
            steps=self.steps,
            deps=self.deps,
        )

    def within(self, own: TurnContext) -> TurnContext:
        """Return this context, with the conversation of an instance's own if it has none."""
        if self.conversation is not None:
            return self
        return replace(self, conversation=own.conversation)


class OpenCallMeters:
    """Usage meters of open server-tool calls, which sampling requests are charged to."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[tuple[Meter, ...], Place]]] = {}

    @contextmanager
    def entered(self, agent: str, meters: tuple[Meter, ...]) -> Generator[None]:
        """Hold the meters of an agent's turn as long as one of its calls is open."""
        calls = self._open.setdefault(agent, [])
        call = meters, here()
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)

    def newest(self, agent: str) -> tuple[tuple[Meter, ...], Place]:
        """Return the meters and the place of the agent's newest open call; none where none is."""
        calls = self._open.get(agent)
        return calls[-1] if calls else ((), NULL_STEPS.top)


TOP = TurnContext()
"""Where a turn stands that nothing else started."""
