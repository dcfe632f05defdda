"""Lines that wait to be sent: their order, and which of them are parked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.sessions.store import SessionStore
from fast_agent.tui.input.line_queue import LineQueue

if TYPE_CHECKING:
    from pathlib import Path


def _queue(*lines: str, parked: int = 0) -> LineQueue:
    queue = LineQueue()
    queue.put_back(lines[len(lines) - parked :], parked=True)
    for line in lines[: len(lines) - parked]:
        queue.add(line)
    return queue


def _taken(queue: LineQueue) -> list[str]:
    return list(iter(queue.take, None))


@pytest.mark.spec("T-Q3.1")
def test_parked_lines_wait_and_later_ones_go_ahead() -> None:
    queue = _queue("a", "b", parked=1)
    queue.add("c")
    assert queue.lines == ["a", "c", "b"]
    assert (_taken(queue), queue.is_parked) == (["a", "c"], True)
    queue.resume()
    assert (_taken(queue), queue.is_parked) == (["b"], False)


def test_a_line_that_is_about_to_be_sent_is_not_shown_as_waiting() -> None:
    queue = _queue("a", "b", "c", parked=1)
    assert queue.shown == [("b", False), ("c", True)]
    queue.take()
    assert queue.shown == [("b", False), ("c", True)]
    assert _queue("c", parked=1).shown == [("c", True)]


@pytest.mark.parametrize(
    ("place", "ready"), [(0, ["b"]), (1, ["a"]), (2, ["a", "b"]), (-1, ["a", "b"])]
)
def test_a_removed_line_leaves_the_others_as_they_were(place: int, ready: list[str]) -> None:
    queue = _queue("a", "b", "c", "d", parked=2)
    queue.pop(place)
    assert _taken(queue) == ready


def test_a_moved_line_makes_no_parked_line_ready() -> None:
    queue = _queue("a", "b", parked=2)
    queue.move(1, 0)
    assert (queue.lines, queue.take()) == (["b", "a"], None)


@pytest.mark.spec("T-Q3.2")
@pytest.mark.parametrize(("line", "kept"), [("a", ("a", "s", "b")), ("/a", ("s", "b"))])
def test_a_message_is_kept_while_it_is_sent_and_a_command_is_not(
    tmp_path: Path, line: str, kept: tuple[str, ...]
) -> None:
    store = SessionStore(tmp_path)
    queue = _queue(line, "b")
    queue.take()
    with store.create(cwd=tmp_path) as session:
        queue.keep(session, ["s"])
    with store.open(session.id) as session:
        assert session.queue == kept
        other = LineQueue()
        assert (other.take_from(session), other.take(), other.lines) == (len(kept), None, [*kept])
