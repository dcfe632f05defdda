"""What a journal holds of a history: only what it lacks is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.agents.events import Origin
from fast_agent.agents.history.journal import HistoryWriter, TurnJournal
from fast_agent.agents.history.transcript import Compaction, Transcript
from fast_agent.agents.turn_context import TOP
from fast_agent.messages.history import History
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import Usage
from fast_agent.sessions.event import HistoryCompacted, HistoryExtended, HistoryReplaced

if TYPE_CHECKING:
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import Journal

MESSAGES = (Message.user("hi"), Message.assistant("ho"))


class Written:
    """A journal that queues what it records until a barrier."""

    transcript = None

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []
        self.safe = 0

    def record(self, *events: SessionEvent) -> None:
        self.events += events

    async def barrier(self) -> None:
        self.safe = len(self.events)

    def is_due(self, *, top: bool) -> bool:
        del top
        return False


def writer(length: int) -> tuple[HistoryWriter, list[SessionEvent]]:
    journal = Written()
    return HistoryWriter(cast("Journal", journal), "ann", length), journal.events


@pytest.mark.anyio
@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_turn_did_is_safe_before_the_turn_continues(fails: bool) -> None:
    journal, used = Written(), Usage()
    turn = TurnJournal(
        cast("Journal", journal), Origin("ann", "t1", None), TOP, record=None, start=0,
        usages=lambda: (used, used),
    )  # fmt: skip

    def recorded() -> list[str]:
        assert journal.safe == len(journal.events)
        return [type(one).__name__ for one in journal.events]

    call, result = ToolCall("1", "t"), ToolResult("1")
    asked = Message("assistant", (), (call,))
    await turn.began(MESSAGES[0])
    assert recorded() == ["TurnBegan"]
    await turn.answered(asked, History(MESSAGES[:1]), last=False)
    assert recorded()[1:] == ["MessageAdded"]
    await turn.tool_answered(result)
    assert recorded()[2:] == ["ToolAnswered"]
    conversation = (MESSAGES[0], asked, Message("user", tool_results=(result,)), Message.user("!"))
    await turn.reached(History(conversation))
    assert recorded()[3:] == ["MessageAdded"]
    if fails:
        await turn.record_failure("error")
    else:
        await turn.end("endTurn", History(conversation), kept=False)
    assert recorded()[4:] == ["TurnEnded"]
    assert turn.ended


def test_a_history_that_the_journal_holds_is_not_written_again() -> None:
    history, events = writer(2)
    history.catch_up(Transcript(MESSAGES))
    assert events == []


def test_a_history_that_the_journal_lacks_is_written_once_with_its_summary() -> None:
    history, events = writer(0)
    conversation = Transcript(MESSAGES)
    conversation.compaction = Compaction(1, "a greeting")
    for _ in range(2):
        history.catch_up(conversation)
    assert events == [
        HistoryReplaced("ann", MESSAGES),
        HistoryCompacted("ann", 1, "a greeting", None),
    ]


def test_what_failed_to_be_written_is_written_with_the_whole_history() -> None:
    history, events = writer(2)
    history.mark_stale()
    history.catch_up(Transcript(MESSAGES))
    history.catch_up(Transcript(MESSAGES))
    assert events == [HistoryReplaced("ann", MESSAGES)]


def test_messages_that_were_written_as_they_came_are_not_written_again() -> None:
    history, events = writer(0)
    history.extended(MESSAGES, History())
    history.catch_up(Transcript(MESSAGES))
    assert events == [HistoryExtended("ann", MESSAGES)]


def test_messages_after_what_failed_to_be_written_are_written_with_it() -> None:
    history, events = writer(0)
    history.mark_stale()
    history.extended(MESSAGES[1:], History(MESSAGES[:1]))
    history.catch_up(Transcript(MESSAGES))
    assert events == [HistoryReplaced("ann", MESSAGES)]


@pytest.mark.anyio
async def test_a_history_is_safe_once_the_journal_is() -> None:
    journal = Written()
    history = HistoryWriter(cast("Journal", journal), "ann", 0)
    history.catch_up(Transcript(MESSAGES))
    assert journal.safe == 0
    await history.barrier()
    assert journal.safe == len(journal.events) == 1
