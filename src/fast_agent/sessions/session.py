"""Session: one conversation, written down as it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from fast_agent.errors import SessionError
from fast_agent.sessions.event import BlockListed, MessageAdded, Rewound, Titled, TurnEnded
from fast_agent.sessions.journal import SessionJournal
from fast_agent.sessions.row import row_of
from fast_agent.sessions.state import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from fast_agent.messages.message import Message
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.log import EventLog
    from fast_agent.sessions.row import Row
    from fast_agent.sessions.state import SessionState
    from fast_agent.sessions.turn_record import TurnRecord
    from fast_agent.text.file_lock import FileLock


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """What is known of a session without its events.

    Args:
        id: Its id.
        created: When it began, in seconds since the epoch.
        cwd: The directory it began in; empty where it began in none.
        parent: The session it was forked from, or None.
    """

    id: str
    created: float
    cwd: str
    parent: str | None = None

    @classmethod
    def of(cls, log: EventLog) -> SessionFacts:
        """Read the facts of a log.

        Raises:
            SessionError: They are not there.
        """
        facts = log.facts
        try:
            return cls(
                id=facts["id"],
                created=float(facts["created"]),
                cwd=facts["cwd"],
                parent=facts.get("parent"),
            )
        except (KeyError, ValueError) as error:
            raise SessionError(f"session `{log.path}` is damaged: its facts are gone") from error

    def texts(self) -> dict[str, str]:
        """Give them as a log holds them."""
        texts = {"id": self.id, "created": repr(self.created), "cwd": self.cwd}
        return texts if self.parent is None else {**texts, "parent": self.parent}


class Session:
    """An open session: `with store.open(…) as session:`.

    What was running when its program ended is closed at once, the way a cancelled turn is.

    Args:
        log: Its file.
        lock: What keeps others from writing it.

    Attributes:
        facts: What is known of it without its events.
        journal: Takes the events of live agents.
        last_agent: The agent that was talked to last when it was opened or taken over, or None.

    Raises:
        SessionError: The log is damaged, or cannot be written.
    """

    def __init__(self, log: EventLog, lock: FileLock) -> None:
        self._log = log
        self._lock = lock
        self.facts = SessionFacts.of(log)
        state = self._recovered()
        self.last_agent = _last_agent(state)
        self.journal = SessionJournal(log, state)

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
        """What it amounts to now; read from the log anew each time.

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

    def rename(self, title: str) -> None:
        """Give it a title.

        Raises:
            SessionError: It cannot be written.
        """
        self._record(Titled(title))

    def rewind(self, turn: int | str) -> None:
        """Go back to where a turn had just ended; what came after it stays in the log.

        Live agents are to be restored after this: `Runtime.restore`.

        Args:
            turn: Its number among the turns nothing else started, from 1, or its id; 0 goes back to
                the beginning.

        Raises:
            SessionError: There is no such turn, a turn is running, or it cannot be written.
        """
        state = self.state
        if any(running.ended is None for running in state.open_turns):
            raise SessionError(f"session `{self.id}` cannot be rewound while a turn is running")
        self._record(Rewound(end_of(state, turn)))
        self.journal.restart(self._recovered())

    def take_over(self, rows: Iterable[tuple[float, Row]]) -> None:
        """Add events of another session, with their times in seconds since the epoch.

        Raises:
            SessionError: They cannot be written; none is then.
        """
        self._log.append_all(rows)
        state = self._recovered()
        self.last_agent = _last_agent(state)
        self.journal.restart(state)

    def close(self) -> None:
        """Close it, so that another process may open it; safe to call twice."""
        self._log.close()
        self._lock.release()

    def _record(self, event: SessionEvent) -> None:
        self._log.append(row_of(event))

    def _recovered(self) -> SessionState:
        """Give the state, with an end for every turn in the log."""
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
