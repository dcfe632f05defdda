"""Sessions in a directory of their own, and turns to write into them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.sessions.event import MessageAdded, ToolAnswered, TurnBegan, TurnEnded
from fast_agent.sessions.sqlite.log import SqliteLog
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fast_agent.sessions.event import Place, SessionEvent
    from fast_agent.sessions.journal import SessionJournal
    from fast_agent.sessions.session import Session
    from fast_agent.trust.found_set import Provenance

START = 1_790_000_000.0


def store_in(home: Path, *, provenance: Callable[[], Provenance] | None = None) -> SessionStore:
    """Make a store whose clock gains a second at every look, and whose ids are counted."""
    seconds = count()
    numbers = count(1)
    return SessionStore(
        home,
        now=lambda: START + next(seconds),
        token=lambda: f"{next(numbers):08x}",
        provenance=provenance,
    )


def began(
    turn_id: str,
    text: str = "hi",
    *,
    agent: str = "ann",
    parent: str | None = None,
    depth: int = 0,
    keeps: bool = True,
) -> TurnBegan:
    return TurnBegan(
        turn_id=turn_id,
        agent=agent,
        parent_call_id=parent,
        depth=depth,
        keeps=keeps,
        message=Message.user(text),
    )


def plain_turn(turn_id: str, text: str, answer: str, *, agent: str = "ann") -> list[SessionEvent]:
    return [
        began(turn_id, text, agent=agent),
        MessageAdded(turn_id, 1, Message.assistant(answer)),
        TurnEnded(turn_id, "endTurn", kept=True),
    ]


def calling(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(one, "look") for one in ids))


def result(call_id: str, text: str = "seen") -> ToolResult:
    return ToolResult(call_id, (TextContent(text),))


def tool_turn(turn_id: str, *, place: Place = "listed") -> list[SessionEvent]:
    return [
        began(turn_id, "look twice"),
        MessageAdded(turn_id, 1, calling("1", "2")),
        ToolAnswered(turn_id, result("2", "two")),
        ToolAnswered(turn_id, result("1", "one")),
        MessageAdded(turn_id, 3, Message.assistant("done")),
        TurnEnded(turn_id, "endTurn", kept=True, place=place),
    ]


def write(session: Session, *groups: list[SessionEvent]) -> None:
    for group in groups:
        for event in group:
            session.journal.record(event)


def texts(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        yield from (f"<{found.text}>" for found in message.tool_results)
        if not message.tool_results:
            yield message.text or " ".join(call.id for call in message.tool_calls)


def sqlite_log(journal: SessionJournal) -> SqliteLog:
    """The open file a journal writes to."""
    log = journal._log
    assert isinstance(log, SqliteLog)
    return log
