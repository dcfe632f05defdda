"""Rows: events as the table of a log holds them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, assert_never

from fast_agent.sessions.event import (
    BlockListed,
    HistoryCleared,
    HistoryCompacted,
    HistoryExtended,
    HistoryReplaced,
    MessageAdded,
    Queued,
    Rewound,
    Titled,
    ToolAnswered,
    TurnBegan,
    TurnEnded,
)
from fast_agent.sessions.message_text import store, store_all, store_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.sessions.event import Place, SessionEvent

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


COLUMNS = ", ".join(Row._fields)

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
        case Rewound():
            return Row(REWOUND, number=event.kept)
        case Titled():
            return Row(TITLED, data=_encodable(event.title))
        case Queued():
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
