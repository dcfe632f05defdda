"""What a journal holds of a history: only what it lacks is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fast_agent.agents.history.journal import HistoryWriter
from fast_agent.agents.history.transcript import Compaction, Transcript
from fast_agent.messages.message import Message
from fast_agent.sessions.event import HistoryCompacted, HistoryReplaced

if TYPE_CHECKING:
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import Journal

MESSAGES = (Message.user("hi"), Message.assistant("ho"))


class Written:
    def __init__(self) -> None:
        self.events: list[SessionEvent] = []

    def record(self, *events: SessionEvent) -> None:
        self.events += events


def writer(length: int) -> tuple[HistoryWriter, list[SessionEvent]]:
    journal = Written()
    return HistoryWriter(cast("Journal", journal), "ann", length), journal.events


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
