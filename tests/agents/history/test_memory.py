"""Memory: what was put aside while a turn runs, when the memory is cleared or loaded meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.agents.history.memory import Memory
from fast_agent.messages.history import History
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import Journal

BLOCK = (Message.user("from a child"), Message.assistant("said"))
FIRST = Message("user", Message.user("always").content, is_template=True)
LOADED = (Message.user("loaded"), Message.assistant("too"))


def busy() -> Memory:
    """Return a memory whose turn runs, with a block that waits for its end."""
    memory = Memory((FIRST,), remembers=True)
    memory.begin()
    memory.add_external(BLOCK)
    assert list(memory.history) == [FIRST]
    return memory


@pytest.mark.spec("ROUTE-3")
def test_what_was_put_aside_lands_when_the_turn_has_ended() -> None:
    memory = busy()
    memory.end()
    assert list(memory.history) == [FIRST, *BLOCK]
    memory.add_external(LOADED)
    assert list(memory.history) == [FIRST, *BLOCK, *LOADED]


@pytest.mark.parametrize(("everything", "left"), [(False, [FIRST]), (True, [])])
def test_what_was_put_aside_is_forgotten_with_the_rest(
    everything: bool, left: list[Message]
) -> None:
    memory = busy()
    memory.clear(everything=everything)
    memory.end()
    assert list(memory.history) == left


def test_what_was_put_aside_gives_way_to_what_is_loaded() -> None:
    memory = busy()
    memory.load(LOADED)
    memory.end()
    assert list(memory.history) == list(LOADED)


class Held:
    """A journal that holds a history of `ann`, or none."""

    def __init__(self, *messages: Message) -> None:
        self._history = History(messages) if messages else None

    def history(self, agent: str) -> History | None:
        return self._history if agent == "ann" else None

    def compaction(self, agent: str) -> None:
        del agent

    def record(self, *events: SessionEvent) -> None:
        del events


def test_what_a_journal_holds_is_taken_up() -> None:
    memory = Memory((FIRST,), remembers=True)

    def attach(journal: Held) -> list[Message]:
        memory.attach(cast("Journal", journal), "ann")
        return list(memory.history)

    assert attach(Held()) == [FIRST]
    memory.load(BLOCK)
    assert attach(Held(*LOADED)) == list(LOADED)
    assert attach(Held(*BLOCK)) == list(BLOCK)
    assert attach(Held()) == [FIRST]  # another session, in which it remembers nothing yet


def test_what_is_remembered_stays_where_a_first_journal_holds_nothing() -> None:
    memory = Memory((FIRST,), remembers=True)
    memory.load(LOADED)
    memory.attach(cast("Journal", Held()), "ann")
    assert list(memory.history) == list(LOADED)


def test_a_memory_that_remembers_nothing_takes_nothing_up() -> None:
    memory = Memory((FIRST,), remembers=False)
    memory.attach(cast("Journal", Held(*LOADED)), "ann")
    assert list(memory.history) == [FIRST]
    assert memory.record is None
