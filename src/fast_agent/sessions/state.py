"""State: the current state of a session and its turns, computed from the events of its log."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from fast_agent.errors import SessionError
from fast_agent.messages.message import Message, TextContent, ToolResult
from fast_agent.sessions.cumulative import Entry
from fast_agent.sessions.event import (
    BLOCK,
    CLEARED,
    COMPACTED,
    END,
    EXTENDED,
    LASTING,
    MESSAGE,
    PLACES,
    QUEUED,
    REPLACED,
    RESULT,
    REWOUND,
    TITLED,
    TURN,
    HistoryCompacted,
)
from fast_agent.sessions.message_text import read, read_all, read_ids, read_result
from fast_agent.text.garbage_collection import collection_paused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.sessions.event import Logged, Place
    from fast_agent.sessions.log import EventLog
    from fast_agent.sessions.message_text import Stored

LOST = "interrupted before it finished"
"""What the result of a call says that was running when the program ended."""
INTERRUPTED = "[interrupted before an answer]"
"""Replaces an answer that was never given."""


@dataclass(slots=True)
class TurnRecord:
    """What a log holds of one turn; its messages are read when they are asked for.

    Args:
        turn_id: The turn.
        agent: Whose turn it is.
        parent_call_id: The call or the turn it answers to, or None.
        depth: How many agents stand above it.
        keeps: Whether its agent remembers turns.
        began: The number of the event it began with.
        texts: Its messages as written; a list is a message of nothing but results, of those there
            are.
        history_version: How often the agent's history had been replaced when it began.
        stop_reason: Why it ended; None while it runs.
        ended: The number of the event it ended with, or None.
        place: Where it stands in the transcript, once it ended.
        used: What it used with all it started; see `TurnEnded`.
        own: What its agent used itself.
        model: The model it asked last, or None.
    """

    turn_id: str
    agent: str
    parent_call_id: str | None
    depth: int
    keeps: bool
    began: int
    texts: list[Stored | list[Stored]]
    history_version: int = 0
    stop_reason: str | None = None
    ended: int | None = None
    place: Place = "held"
    used: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    model: str | None = None

    def put(self, index: int, text: Stored) -> None:
        """Take a message."""
        texts = self.texts
        if index == len(texts):
            texts.append(text)
        elif index < len(texts):
            texts[index] = text
        else:
            raise SessionError(f"turn `{self.turn_id}` has no message {index - 1}")

    def answer(self, text: Stored) -> None:
        """Take the result of a tool call of the last message."""
        results = self.texts[-1]
        if isinstance(results, list):
            results.append(text)
        else:
            self.texts.append([text])

    def messages(self) -> list[Message]:
        """Read its messages, with those of results that came after them.

        Raises:
            SessionError: One of them is damaged.
        """
        there: list[Message] = []
        self.read_to(there)
        return there

    def read_to(self, there: list[Message]) -> None:
        """Append the messages as of this turn to `there`.

        Raises:
            SessionError: One of them is damaged.
        """
        for text in self.texts:
            if isinstance(text, list):
                there.append(_carrier(there[-1], text))
            else:
                form, data = text
                there.append(read(form, data))

    def closed(self) -> list[Message]:
        """Read its messages, put right where it was interrupted.

        Calls that have no result get one that says so, and a note takes the place of an answer, so
        that the next user message may follow.

        Raises:
            SessionError: One of them is damaged.
        """
        there = self.messages()
        if there[-1].tool_calls:
            there.append(_carrier(there[-1], ()))
        if there[-1].role == "user":
            there.append(Message.assistant(INTERRUPTED, "cancelled"))
        return there

    def entry(self) -> Entry:
        """Return it as an entry of a transcript.

        Raises:
            SessionError: A message of it is damaged.
        """
        messages = self.closed() if self.ended is None else self.messages()
        return Entry(self.agent, self.turn_id, self.parent_call_id, tuple(messages))


def _carrier(asking: Message, texts: Iterable[Stored]) -> Message:
    """Make the message that carries the results of the calls of `asking`, in call order."""
    calls = asking.tool_calls
    results = [read_result(form, text) for form, text in texts]
    if len(calls) == 1 == len(results) and results[0].id == calls[0].id:
        return Message("user", (), (), (results[0],))  # as nearly all are
    if [result.id for result in results] != [call.id for call in calls]:
        there = {result.id: result for result in results}
        results = [
            there.get(call.id) or ToolResult(call.id, (TextContent(LOST),), is_error=True)
            for call in calls
        ]
    return Message("user", (), (), tuple(results))


_USED = re.compile("[0-9]{1,18}( [0-9]{1,18}){5,7}")
"""The counts of what a turn used; sessions from before prices have six."""


class _AgentPast:
    """What an agent remembers: turns and lists of messages, in order, read when asked for."""

    __slots__ = ("compaction", "parts", "version")

    def __init__(self) -> None:
        self.compaction: HistoryCompacted | None = None
        self.parts: list[TurnRecord | list[Message]] = []
        self.version = 0

    def replace(self, messages: list[Message]) -> None:
        self.parts = [messages]
        self.version += 1
        self.compaction = None

    def messages(self) -> list[Message]:
        there: list[Message] = []
        for part in self.parts:
            if isinstance(part, list):
                there += part
            elif part.ended is None:
                there += part.closed()
            else:
                part.read_to(there)
        return there


class SessionState:
    """What a session is after its events: histories, turns, transcript, title.

    Messages stay the text they were written as until they are asked for.

    Args:
        rows: Every event with its number, in order.
        running: Whether turns that have not ended count, as if they were cancelled now.

    Attributes:
        title: The title given last, or None.
        queue: The messages that wait to be sent.
        last: The number of the last event; 0 where there is none.
        rewinds: For each rewind among the events, the event it went back to and its own number.

    Raises:
        SessionError: An event does not fit those before it.
    """

    def __init__(self, rows: Iterable[Logged], *, running: bool = True) -> None:
        self.title: str | None = None
        self.queue: tuple[str, ...] = ()
        self.last = 0
        self.rewinds: list[tuple[int, int]] = []
        self._turns: dict[str, TurnRecord] = {}
        self._listed: list[str] = []
        self._pasts: dict[str, _AgentPast] = {}
        self._take_all(rows)
        if running:
            self._close()

    @property
    def turns(self) -> tuple[TurnRecord, ...]:
        """The turns nothing else started, in the order in which they began."""
        return tuple([turn for turn in self._turns.values() if turn.parent_call_id is None])

    @property
    def all_turns(self) -> tuple[TurnRecord, ...]:
        """All turns, those that others started included, in the order in which they began."""
        return tuple(self._turns.values())

    @property
    def used(self) -> tuple[int, ...]:
        """What all turns used together, in the order of the counts of `Usage`; empty of nothing."""
        return tuple(map(sum, zip_longest(*[turn.used for turn in self.turns], fillvalue=0)))

    @property
    def open_turns(self) -> tuple[TurnRecord, ...]:
        """The turns that have not ended or wait for their place, those of the deepest first."""
        waiting = [turn for turn in self._turns.values() if turn.place == "held"]
        return tuple(sorted(waiting, key=lambda turn: -turn.depth))

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents whose histories it holds."""
        return tuple(self._pasts)

    def remembers(self, turn: TurnRecord) -> bool:
        """Whether an unfinished turn is in its agent's history, as a cancelled one would be."""
        return turn.keeps and self._past(turn.agent).version == turn.history_version

    def history(self, agent: str) -> list[Message] | None:
        """Read what an agent remembers; None where the session knows nothing of it.

        Raises:
            SessionError: A message is damaged.
        """
        past = self._pasts.get(agent)
        return None if past is None else past.messages()

    def compaction(self, agent: str) -> HistoryCompacted | None:
        """Return the last compaction of an agent's history; None without one."""
        past = self._pasts.get(agent)
        return None if past is None else past.compaction

    def entries(self) -> list[Entry]:
        """Read the transcript: every turn of every agent.

        Raises:
            SessionError: A message is damaged.
        """
        return [self._turns[turn_id].entry() for turn_id in self._listed]

    def _past(self, agent: str) -> _AgentPast:
        past = self._pasts.get(agent)
        if past is None:
            past = self._pasts[agent] = _AgentPast()
        return past

    def _take_all(self, rows: Iterable[Logged]) -> None:
        turns = self._turns
        for row in rows:
            seq, kind, turn_id, _, _, number, _, form, data = row
            self.last = seq
            # Most events of a long session are taken here, without a call for each.
            turn = turns.get(turn_id or "")
            if turn is not None and data is not None:
                if kind == MESSAGE and number == len(turn.texts):
                    turn.texts.append((form, data))
                    continue
                if kind == RESULT:
                    turn.answer((form, data))
                    continue
            try:
                self._take(row)
            except SessionError as error:
                msg = f"event {seq} is damaged: {error.message}"
                raise SessionError(msg, hint=error.hint) from error

    def _take(self, row: Logged) -> None:
        seq, kind, turn_id, agent, parent, number, flag, form, data = row
        if kind == MESSAGE:
            self._turn(turn_id).put(number or 0, (form, data or ""))
        elif kind == RESULT:
            self._turn(turn_id).answer((form, data or ""))
        elif kind == END:
            self._end(seq, row)
        elif kind == REWOUND:
            self.rewinds.append((number or 0, seq))
        elif kind == TURN:
            self._begin(
                TurnRecord(
                    turn_id or "",
                    agent or "",
                    parent,
                    number or 0,
                    bool(flag),
                    seq,
                    [(form, data or "")],
                )
            )
        elif kind == COMPACTED:
            native = None if form is None else json.loads(form)
            made = HistoryCompacted(agent or "", number or 0, data or "", native)
            self._past(made.agent).compaction = made
        else:
            self._apply_rare(kind, agent or "", flag, data or "")

    def _apply_rare(self, kind: str, agent: str, flag: int | None, data: str) -> None:
        match kind:
            case k if k == BLOCK:
                self._list(read_ids(data))
            case k if k == CLEARED:
                past = self._past(agent)
                past.replace([] if flag else [m for m in past.messages() if m.is_template])
            case k if k == REPLACED:
                self._past(agent).replace(read_all(data))
            case k if k == EXTENDED:
                self._past(agent).parts.append(read_all(data))
            case k if k == TITLED:
                self.title = data
            case k if k == QUEUED:
                self.queue = tuple(read_ids(data))
            case _:
                raise SessionError(f"`{kind}` is not a kind of event")

    def _turn(self, turn_id: str | None) -> TurnRecord:
        turn = self._turns.get(turn_id or "")
        if turn is None:
            raise SessionError(f"turn `{turn_id}` never began")
        return turn

    def _begin(self, turn: TurnRecord) -> None:
        if turn.turn_id in self._turns:
            raise SessionError(f"turn `{turn.turn_id}` began twice")
        if turn.keeps:
            turn.history_version = self._past(turn.agent).version
        self._turns[turn.turn_id] = turn

    def _end(self, seq: int, row: Logged) -> None:
        _, _, turn_id, model, own, place, kept, used, reason = row
        turn = self._turn(turn_id)
        if turn.ended is not None:
            return  # one that was cancelled while its end was written may end twice
        turn.stop_reason, turn.ended = reason, seq
        if used:
            turn.used = _numbers(used)
        turn.model, turn.own = model, _numbers(own) if own else ()
        if kept:
            self._past(turn.agent).parts.append(turn)
        place = place or 0
        if not 0 <= place < len(PLACES):
            raise SessionError(f"a turn cannot have the place {place}")
        turn.place = PLACES[place]
        if turn.place == "listed":
            self._listed.append(turn.turn_id)

    def _list(self, turn_ids: Iterable[str]) -> None:
        for turn_id in turn_ids:
            if turn_id not in self._turns:
                raise SessionError(f"turn `{turn_id}` never began")
            self._turns[turn_id].place = "listed"
            self._listed.append(turn_id)

    def _close(self) -> None:
        """Count in what was running when the log ended."""
        for turn in self.open_turns:
            self._listed.append(turn.turn_id)
            if turn.ended is None and self.remembers(turn):
                self._past(turn.agent).parts.append(turn)


def _numbers(text: str) -> tuple[int, ...]:
    if _USED.fullmatch(text) is None:
        raise SessionError(f"`{text[:50]}` is not the usage of a turn")
    return tuple(map(int, text.split()))


def without_rewound(rows: Iterable[Logged], rewinds: Iterable[tuple[int, int]]) -> Iterable[Logged]:
    """Leave out the events that were rewound; titles and the queue stay.

    Args:
        rows: Every event with its number, in order.
        rewinds: For each rewind, in order, the event it went back to and its own number.
    """
    gaps = _gaps(rewinds)
    return _outside(gaps, rows) if gaps else rows


def _gaps(rewinds: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Select the rewinds that no later one takes away."""
    gaps: list[tuple[int, int]] = []
    for kept, end in rewinds:
        # A rewind never goes back to what an earlier one took away, so gaps never overlap in part.
        while gaps and gaps[-1][0] >= kept:
            gaps.pop()
        gaps.append((kept, end))
    return gaps


def _outside(gaps: list[tuple[int, int]], rows: Iterable[Logged]) -> Iterator[Logged]:
    left = iter((*gaps, (sys.maxsize, sys.maxsize)))
    kept, end = next(left)
    for row in rows:
        while row[0] >= end:
            kept, end = next(left)
        if row[0] <= kept or row[1] in LASTING:
            yield row


def state_of(log: EventLog, last: int | None = None, *, running: bool = True) -> SessionState:
    """Compute the state that a log describes.

    Args:
        log: The log.
        last: The last event that counts; None is all.
        running: Whether turns that have not ended count, as if they were cancelled now.

    Raises:
        SessionError: It is damaged.
    """
    rewinds = log.rewinds(last)
    try:
        with collection_paused():
            state = SessionState(without_rewound(log.rows(last), rewinds), running=running)
    except (SessionError, TypeError, ValueError, AttributeError, LookupError) as error:
        known = isinstance(error, SessionError)
        if known and log.place in error.message:
            raise
        # What does not fit is named by the checksums, which also know of what looks right.
        damage = log.inspect().damage
        if damage.events:
            raise log.damage_error(damage) from error
        if not known:  # values of other kinds come from damage alone
            raise
        msg = f"session `{log.place}`: {error.message}"
        raise SessionError(msg, hint=error.hint) from error
    # They come from an index, which has no checksum; their events have.
    if state.rewinds != _gaps(rewinds):
        raise log.index_error()
    return state
