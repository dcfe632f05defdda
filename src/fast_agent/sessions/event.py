"""Events: what a session's log holds, in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
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
class Rewound:
    """What came after event `kept` counts no more; it stays in the log."""

    kept: int


@frozen
class Titled:
    """The session has this title."""

    title: str


@frozen
class Queued:
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
    | Rewound
    | Titled
    | Queued
)
