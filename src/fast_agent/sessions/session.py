"""Session: one conversation, recorded while it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from fast_agent.errors import SessionError, UnapprovedError
from fast_agent.sessions.event import (
    LASTING,
    REWOUND,
    BlockListed,
    MessageAdded,
    MessagesQueued,
    Row,
    SessionRewound,
    SessionTitled,
    TurnEnded,
    row_of,
)
from fast_agent.sessions.facts import SessionFacts, SessionSets
from fast_agent.sessions.journal import SessionJournal
from fast_agent.sessions.state import state_of, without_rewound
from fast_agent.steps.steps import Steps
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from fast_agent.messages.message import Message
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.log import EventLog
    from fast_agent.sessions.state import SessionState, TurnRecord
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.found_set import Provenance


@frozen
class SetChange:
    """What is different where a session is resumed.

    Args:
        session_id: The session.
        began: The root it belongs to; None where it is the same.
        root: The root it is resumed under.
        added: What its agents may do now and could not do in it before.
    """

    session_id: str
    began: str | None
    root: Path
    added: tuple[Effect, ...]

    @property
    def text(self) -> str:
        """The lines a user sees."""
        from fast_agent.trust.question import effect_lines, shown_root

        here = shown_root(self.root)
        if self.began is None:
            head = f"session `{self.session_id}`: its agents may do more than when it was kept"
        else:
            began = shown_root(Path(self.began))
            head = f"session `{self.session_id}` belongs to `{began}`, and this is `{here}`"
        return "\n".join((visible(head), *effect_lines(self.added, "+")))

    @property
    def refusal(self) -> UnapprovedError:
        """The error if no user agreed."""
        back = "" if self.began is None else f"resume it in `{self.began}`; "
        return UnapprovedError(
            f"{self.text}\nnothing was sent",
            hint=f"{back}what was said in it reaches agents that may act: "
            f"`fast-agent go --resume {self.session_id}` asks at a terminal, and `--trust` goes on "
            "this once",
        )


@frozen
class InterruptedTurn:
    """A turn that was under way when the process of its session was killed.

    Args:
        turn_id: The turn.
        agent: The agent that was asked.
        message: The user's message.
        answered: How many model requests and tool calls of it have an answer.
    """

    turn_id: str
    agent: str
    message: Message
    answered: int


class TurnCarrier(Steps, Protocol):
    """Carries the turns of a session, so that one that was killed can continue."""

    @property
    def interrupted(self) -> InterruptedTurn | None:
        """The turn that was under way when the process was killed, or None."""
        ...

    def take_up(self) -> None:
        """Treat the next turn with the interrupted turn's message as that turn."""
        ...

    def close(self) -> None:
        """Close what it holds; safe to call twice."""
        ...


class Session:
    """An open session: `with store.open(…) as session:`.

    What was running when its program ended is closed at once, the way a cancelled turn is.

    Args:
        log: Its log, open for writing; closed with the session.
        carrier: Keeps the steps of its turns while they are under way; None keeps none. Closed
            with the session.

    Attributes:
        facts: What is known of it without its events.
        journal: Takes the events of live agents.
        last_agent: The agent that was talked to last when it was opened or taken over, or None.
        queue: The messages that waited to be sent when it was opened.

    Raises:
        SessionError: The log is damaged, or cannot be written.
    """

    def __init__(self, log: EventLog, carrier: TurnCarrier | None = None) -> None:
        self._log = log
        self._carrier = carrier
        self.facts = SessionFacts.of(log.facts, log.place)
        state = self._recovered()
        self.last_agent = _last_agent(state)
        self.queue = state.queue
        self.journal = SessionJournal(self.facts.id, log, state, carrier)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def id(self) -> str:
        """Its id."""
        return self.facts.id

    @property
    def state(self) -> SessionState:
        """Its current state; read from the log again each time.

        Raises:
            SessionError: The log is damaged.
        """
        return state_of(self._log)

    def history(self, agent: str) -> list[Message]:
        """Read what an agent remembers now.

        Raises:
            SessionError: The log is damaged.
        """
        return self.state.history(agent) or []

    def change(self, provenance: Provenance) -> SetChange | None:
        """Compare the sets it was talked with to those of a run.

        Args:
            provenance: Those of the run.

        Returns:
            What a user has to agree to; None where nothing is different, where neither has a
            found set, or where it is from before its sets were kept.
        """
        then, now = self.facts.brought, SessionSets.now(provenance)
        if then is None or (not then.digest and not now.digest):
            return None
        added = tuple([provenance.effects[one] for one in provenance.effects.keys() - then.effects])
        began = None if then.root == now.root else then.root
        if began is None and not added:
            return None
        return SetChange(self.id, began, provenance.root, added)

    def belong(self, provenance: Provenance) -> None:
        """Remember what the sets of a run may do, so that it is not asked about again.

        The root stays that in which it began: another one is asked about each time.

        Raises:
            SessionError: It cannot be written.
        """
        then, now = self.facts.brought, SessionSets.now(provenance)
        if then is not None:
            now = replace(now, root=then.root, effects=now.effects | then.effects)
        if now != then:
            self._log.set_facts(now.texts())
            self.facts = replace(self.facts, brought=now)

    def rename(self, title: str) -> None:
        """Set its title.

        Raises:
            SessionError: It cannot be written.
        """
        self._record(SessionTitled(title))

    def keep_queue(self, texts: Iterable[str]) -> None:
        """Record the messages that wait to be sent, in place of those recorded before.

        Raises:
            SessionError: It cannot be written.
        """
        self._record(MessagesQueued(tuple(texts)))

    def rewind(self, turn: int | str) -> None:
        """Go back to where a turn had just ended; what came after it stays in the log.

        Live agents are to be restored after this: `Runtime.restore`.

        Args:
            turn: Its number among the turns nothing else started, from 1, or its id; 0 goes back to
                the start.

        Raises:
            SessionError: There is no such turn, a turn is running, or it cannot be written.
        """
        state = self.state
        if any(running.ended is None for running in state.open_turns):
            raise SessionError(f"session `{self.id}` cannot be rewound while a turn is running")
        self._record(SessionRewound(end_of(state, turn)))
        self.journal.restart(self._recovered())

    def events_after(self, turn: int | str) -> list[tuple[float, Row]]:
        """Read the events that `rewind` takes away, with their times; `take_over` restores them.

        Args:
            turn: The turn to go back to, as for `rewind`.

        Raises:
            SessionError: There is no such turn, or the log is damaged.
        """
        last = end_of(self.state, turn)
        times = self._log.times()
        rows = without_rewound(self._log.rows(), self._log.rewinds())
        return [
            (times[row[0]], Row._make(row[1:]))
            for row in rows
            if row[0] > last and row[1] not in {REWOUND, *LASTING}
        ]

    def take_over(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Add events of another session, with their times in seconds since the epoch.

        Raises:
            SessionError: They cannot be written; none is then.
        """
        self._log.append_all(rows)
        state = self._recovered()
        self.last_agent = _last_agent(state)
        self.journal.restart(state)

    def release(self) -> None:
        """Allow other servers to write it until `acquire`, if it is in a database; blocks.

        Raises:
            SessionError: Something recorded earlier could not be written.
        """
        self._log.release()

    def acquire(self) -> bool:
        """Hold it again after `release`; blocks.

        Returns:
            Whether it is as it was; False if another server wrote it, and it is to be opened again.

        Raises:
            SessionError: Another server uses it, or it is gone.
        """
        return self._log.acquire()

    @property
    def interrupted(self) -> InterruptedTurn | None:
        """The last turn, where its process was killed and it can continue from its last step.

        Raises:
            SessionError: The log is damaged.
            RunError: The steps cannot be read.
        """
        found = None if self._carrier is None else self._carrier.interrupted
        if found is None:
            return None
        turns = self.state.turns
        if not turns or turns[-1].turn_id != found.turn_id:
            return None
        # A turn that had ended was killed while its steps were deleted.
        return found if turns[-1].stop_reason == "cancelled" else None

    def take_up(self) -> InterruptedTurn:
        """Go back to before the interrupted turn, and let its message continue it.

        Live agents are to be restored after this, and its message is to be sent to its agent.

        Raises:
            SessionError: No turn was interrupted, or the log cannot be written.
        """
        found = self.interrupted
        if found is None or self._carrier is None:
            raise SessionError("no turn of this session was interrupted")
        self._record(SessionRewound(self.state.turns[-1].began - 1))
        self.journal.restart(self._recovered())
        self._carrier.take_up()
        return found

    def close(self) -> None:
        """Close it, so that another process may open it; safe to call twice."""
        if self._carrier is not None:
            self._carrier.close()
        self._log.close()

    def _record(self, event: SessionEvent) -> None:
        self._log.append(row_of(event))

    def _recovered(self) -> SessionState:
        """Return the state, with an end for every turn in the log."""
        state = state_of(self._log)
        for turn in state.open_turns:
            if turn.ended is not None:
                self._record(BlockListed((turn.turn_id,)))
                continue
            there = len(turn.texts)
            for index, message in enumerate(turn.closed()[there:], there):
                self._record(MessageAdded(turn.turn_id, index, message))
            self._record(TurnEnded(turn.turn_id, "cancelled", state.remembers(turn)))
        return state


def end_of(state: SessionState, turn: int | str) -> int:
    """Find the event a turn ended with; 0 for turn 0.

    Args:
        state: The state.
        turn: The turn's number from 1, or its id.

    Raises:
        SessionError: There is no such turn, or it has not ended.
    """
    if turn in {0, "0"}:
        return 0
    found = turn_of(state, turn)
    if found.ended is None:
        raise SessionError(f"turn {turn} has not ended")
    return found.ended


def turn_of(state: SessionState, turn: int | str) -> TurnRecord:
    """Find a turn nothing else started by its number from 1, or its id.

    Raises:
        SessionError: There is none.
    """
    turns = state.turns
    if isinstance(turn, str) and turn.isdecimal():
        turn = int(turn)
    if isinstance(turn, int) and 1 <= turn <= len(turns):
        return turns[turn - 1]
    for one in turns:
        if one.turn_id == turn:
            return one
    raise SessionError(
        f"there is no turn `{turn}`",
        hint=f"the turns are 1 to {len(turns)}" if turns else "it has no turns yet",
    )


def _last_agent(state: SessionState) -> str | None:
    turns = state.turns
    return turns[-1].agent if turns else None
