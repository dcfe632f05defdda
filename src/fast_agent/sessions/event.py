"""Events: what a session's log holds, in the order in which it happened, and their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, assert_never

from fast_agent.sessions.message_text import store, store_all, store_result
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.messages.message import Message, ToolResult
    from fast_agent.text.json_value import JsonObject

Place: TypeAlias = Literal["listed", "held", "dropped"]
"""Where a turn that ended stands in the transcript."""


@frozen(kw_only=True)
class TurnBegan:
    """A turn began.

    Args:
        turn_id: The turn.
        agent: Whose turn it is.
        parent_call_id: The tool call it answers, or the turn of the workflow it is a part of; None
            at the top.
        depth: How many agents stand above this one.
        keeps: Whether the agent remembers the turn from now on.
        message: The user's message, the turn's message 0.
    """

    turn_id: str
    agent: str
    parent_call_id: str | None
    depth: int
    keeps: bool
    message: Message


@frozen
class MessageAdded:
    """A turn has a message; one of an index it had before takes that one's place.

    Args:
        turn_id: The turn.
        index: Which message of the turn, from 0.
        message: The message.
    """

    turn_id: str
    index: int
    message: Message


@frozen
class ToolAnswered:
    """A tool call of the turn's last message has its result.

    The message that carries all of them follows only where a hook changed it.
    """

    turn_id: str
    result: ToolResult


@frozen
class TurnEnded:
    """A turn ended, whatever the outcome.

    Args:
        turn_id: The turn.
        stop_reason: Why.
        kept: Whether its messages are in the agent's history now.
        place: Whether they are in the session's transcript now, are held back until a block brings
            them there, or never come there.
        used: What it used with all it started, in the order of the counts of `Usage`; empty where
            another turn counts it too.
        own: What the agent itself used, in the same order; empty of nothing.
        model: The model it asked last, or None.
    """

    turn_id: str
    stop_reason: str
    kept: bool
    place: Place = "listed"
    used: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    model: str | None = None


@frozen
class BlockListed:
    """Turns that were held back came into the session's transcript, in this order."""

    turn_ids: tuple[str, ...]


@frozen
class HistoryCleared:
    """An agent forgot; its templates stay unless `all`."""

    agent: str
    all: bool


@frozen
class HistoryReplaced:
    """An agent remembers these messages and nothing else."""

    agent: str
    messages: tuple[Message, ...]


@frozen
class HistoryExtended:
    """An agent remembers these messages in addition, after the others."""

    agent: str
    messages: tuple[Message, ...]


@frozen
class HistoryCompacted:
    """An agent's model receives a summary instead of the oldest messages; nothing is deleted.

    Args:
        agent: The agent.
        start: The index in its history of the first message that is left as it is.
        summary: What was said before it, after the templates.
        native: The provider's compact form of it, or None.
    """

    agent: str
    start: int
    summary: str
    native: JsonObject | None = None


@frozen
class SessionRewound:
    """What came after event `kept` counts no more; it stays in the log."""

    kept: int


@frozen
class SessionTitled:
    """The session has this title."""

    title: str


@frozen
class MessagesQueued:
    """These messages wait for the turns before them, in this order; none did where it is empty."""

    texts: tuple[str, ...]


SessionEvent: TypeAlias = (
    TurnBegan
    | MessageAdded
    | ToolAnswered
    | TurnEnded
    | BlockListed
    | HistoryCleared
    | HistoryReplaced
    | HistoryExtended
    | HistoryCompacted
    | SessionRewound
    | SessionTitled
    | MessagesQueued
)

TURN, MESSAGE, RESULT, END, BLOCK = "turn", "message", "result", "end", "block"
CLEARED, REPLACED, EXTENDED, COMPACTED, REWOUND, TITLED, QUEUED = (
    "cleared",
    "replaced",
    "extended",
    "compacted",
    "rewound",
    "titled",
    "queued",
)
LASTING = frozenset({TITLED, QUEUED})
"""Kinds of events that a rewind does not take away."""
PLACES: tuple[Place, ...] = ("listed", "held", "dropped")


class Row(NamedTuple):
    """An event without its number and time.

    Args:
        kind: What happened.
        turn: The turn, or None.
        agent: The agent, or None; the model of a turn that ended.
        parent: The call or turn a turn answers to, or None; what the agent of a turn that ended
            used itself, in numbers.
        number: Depth of a turn, index of a message, event a rewind goes back to, where a compaction
            ends, or which of `PLACES` a turn that ended has.
        flag: Whether a turn is kept, or whether templates are forgotten too.
        form: The form of the message, None for JSON; what a turn used, in numbers; a provider's
            form of a compaction, as JSON.
        data: A message or messages, or other text.
    """

    kind: str
    turn: str | None = None
    agent: str | None = None
    parent: str | None = None
    number: int | None = None
    flag: int | None = None
    form: str | None = None
    data: str | None = None


ROW_COLUMNS = ", ".join(Row._fields)
Logged: TypeAlias = tuple[
    int,
    str,
    str | None,
    str | None,
    str | None,
    int | None,
    int | None,
    str | None,
    str | None,
]
"""The number of an event and the fields of its row, as stored in the table."""


def row_of(event: SessionEvent) -> Row:  # noqa: C901 (one line for each kind)
    """Convert an event to its row.

    Raises:
        SessionError: A message of it cannot be written.
    """
    match event:
        case TurnBegan():
            return Row(
                TURN,
                event.turn_id,
                event.agent,
                event.parent_call_id,
                event.depth,
                int(event.keeps),
                *store(event.message),
            )
        case MessageAdded():
            return Row(MESSAGE, event.turn_id, None, None, event.index, None, *store(event.message))
        case ToolAnswered():
            return Row(RESULT, event.turn_id, None, None, None, None, *store_result(event.result))
        case TurnEnded():
            used, own = (" ".join(map(str, one)) or None for one in (event.used, event.own))
            place, kept = PLACES.index(event.place), int(event.kept)
            return Row(END, event.turn_id, event.model, own, place, kept, used, event.stop_reason)
        case BlockListed():
            return Row(BLOCK, data=json.dumps(event.turn_ids))
        case HistoryCleared():
            return Row(CLEARED, agent=event.agent, flag=int(event.all))
        case HistoryReplaced():
            return Row(REPLACED, agent=event.agent, data=store_all(event.messages))
        case HistoryExtended():
            return Row(EXTENDED, agent=event.agent, data=store_all(event.messages))
        case HistoryCompacted():
            native = None if event.native is None else json.dumps(event.native, default=dict)
            summary = _encodable(event.summary)
            return Row(COMPACTED, None, event.agent, None, event.start, None, native, summary)
        case SessionRewound():
            return Row(REWOUND, number=event.kept)
        case SessionTitled():
            return Row(TITLED, data=_encodable(event.title))
        case MessagesQueued():
            return Row(QUEUED, data=json.dumps(event.texts))
        case _:
            assert_never(event)


def hide(row: Row, redact: Callable[[str], str] | None) -> Row:
    """Return a row with the secrets in its text hidden.

    Args:
        row: The row.
        redact: Hides secrets; None hides none.
    """
    if redact is None or row.data is None:
        return row
    hidden = redact(row.data)
    return row if hidden is row.data else row._replace(data=hidden)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
