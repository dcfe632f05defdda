"""Connections: which of them end where there is no room."""

from __future__ import annotations

import pytest

from fast_agent.serve.connections import ConnectionLimits, Connections, LimitedLog


class Held:
    """A connection that records what became of it."""

    def __init__(self) -> None:
        self.is_known = False
        self.ended = False
        self.leaving = False

    def check(self, now: float) -> None:
        raise AssertionError(now)

    def end(self) -> None:
        self.ended = True

    def leave(self) -> None:
        self.leaving = True


def connections(count: int, *, bodies: int) -> tuple[Connections, list[Held]]:
    made = Connections(ConnectionLimits(bodies_bytes=bodies), has_token=False)
    held = [Held() for _ in range(count)]
    for one in held:
        assert made.add(one)
    return made, held


def test_of_connections_that_are_answered_the_one_that_has_been_longest_leaves() -> None:
    all_of_them = Connections(ConnectionLimits(connections=4), has_token=False)
    held = [Held() for _ in range(4)]
    for one in held:
        assert all_of_them.add(one)
        all_of_them.answer(one)
    all_of_them.wait(held[0])
    all_of_them.answer(held[0])
    assert all_of_them.add(Held())
    assert [one.leaving for one in held] == [False, True, False, False]


def test_a_client_that_has_passed_the_checks_is_ended_after_every_stranger() -> None:
    all_of_them, held = connections(3, bodies=1)
    held[0].is_known = True
    all_of_them.wait(held[0])
    ended: list[list[bool]] = []
    while all_of_them.end_most_silent():
        ended.append([one.ended for one in held])
    assert ended == [[False, True, False], [False, True, True], [True, True, True]]
    assert not len(all_of_them)


@pytest.mark.parametrize(("more", "fits"), [(1, True), (40, True), (41, False)])
def test_bodies_take_at_most_what_they_may_together(more: int, fits: bool) -> None:
    all_of_them, (first, second) = connections(2, bodies=100)
    assert all_of_them.hold(first, 60)
    assert all_of_them.hold(second, more)
    assert first.ended is not fits
    assert not second.ended


def test_a_body_does_not_end_for_its_own_next_piece() -> None:
    all_of_them, (first, second) = connections(2, bodies=100)
    assert all_of_them.hold(first, 60)
    assert all_of_them.hold(first, 40)
    assert not all_of_them.hold(first, 1)
    assert not all_of_them.hold(first, 101)
    assert all_of_them.hold(second, 50)
    assert (first.ended, second.ended) == (True, False)


def test_a_body_that_was_read_makes_room() -> None:
    all_of_them, (first, second) = connections(2, bodies=100)
    assert all_of_them.hold(first, 100)
    all_of_them.release(first)
    assert all_of_them.hold(second, 100)
    assert not first.ended


def test_a_log_has_a_line_a_second_and_counts_the_others() -> None:
    lines: list[str] = []
    now = 0.0
    log = LimitedLog(lines.append, lambda: now)
    for now in (0.5, 1.0, 1.4, 1.5, 9.0, 9.1, 10.0):
        log(f"at {now}")
    assert lines == [
        "at 0.5",
        "at 1.5 (and 2 more since the last line)",
        "at 9.0",
        "at 10.0 (and 1 more since the last line)",
    ]
