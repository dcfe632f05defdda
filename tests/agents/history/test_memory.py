"""Memory: what was put aside while a turn runs, when the memory is cleared or loaded meanwhile."""

from __future__ import annotations

import pytest

from fast_agent.agents.history.memory import Memory
from fast_agent.messages.message import Message

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
