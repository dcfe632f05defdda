"""The writer against a terminal: whatever was there, the screen equals a fresh drawing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.tui.drawing.rows import RESET, Style, clip, plain, width, wrap
from fast_agent.tui.drawing.screen import SETTLE_SECONDS, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

STRONG = Style("1;31")
# A mark of its own has no letter to stand on.
LETTERS = st.lists(
    st.sampled_from(("a", "b", " ", "c", "\u6f22", "\u00e9", "e\u0301", "\U0001f600", "-")),
    max_size=30,
).map("".join)
ROWS = st.lists(
    st.one_of(LETTERS, LETTERS.map(STRONG), st.tuples(LETTERS, LETTERS).map(
        lambda pair: STRONG(pair[0]) + pair[1])),
    min_size=1, max_size=6,
)  # fmt: skip


class Drawn:
    """A screen and the terminal that shows what it writes."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.read, self.write = os.pipe()
        os.set_blocking(self.read, False)
        self.terminal = pyte.HistoryScreen(columns, rows, history=1000, ratio=0.5)
        self._stream = pyte.ByteStream(self.terminal)
        self.time = 0.0
        self.screen = Screen(self.write, lambda: (self.columns, self.rows), clock=lambda: self.time)
        self.bytes = b""

    def draw(
        self, rows: Sequence[str], cursor: tuple[int, int], above: Sequence[str] = ()
    ) -> bytes:
        self.screen.draw(rows, cursor, above)
        try:
            data = os.read(self.read, 1 << 20)
        except BlockingIOError:
            data = b""
        # A terminal writes the carriage return of a line feed itself.
        self._stream.feed(data)
        self.bytes += data
        return data

    def close(self) -> None:
        os.close(self.read)
        os.close(self.write)

    @property
    def shown(self) -> list[str]:
        top = ["".join(line[at].data for at in range(self.columns)) for line in
               self.terminal.history.top]  # fmt: skip
        found = [row.rstrip() for row in (*top, *self.terminal.display)]
        while found and not found[-1]:
            found.pop()
        return found


def laid(rows: Sequence[str], columns: int, screen_rows: int) -> list[str]:
    """What a fresh terminal shows of rows."""
    fresh = Drawn(columns, screen_rows)
    try:
        fresh.draw(rows, (0, 0))
        return fresh.shown
    finally:
        fresh.close()


@pytest.mark.spec("T-X4.1", "T-M3.1", "T-L5.1", "T-L5.2")
@given(
    st.lists(st.tuples(ROWS, st.lists(LETTERS, max_size=3)), min_size=1, max_size=6),
    st.integers(8, 60),
    st.integers(7, 14),
)
def test_any_states_one_after_another(
    states: list[tuple[list[str], list[str]]], columns: int, rows: int
) -> None:
    drawn = Drawn(columns, rows)
    committed: list[str] = []
    try:
        for live, above in states:
            at = len(live) - 1
            drawn.draw(live, (at, 2), above)
            committed += above
            fresh = laid(live, columns, rows)
            while fresh and not fresh[-1]:
                fresh.pop()
            expected = [*_wrapped(committed, columns), *fresh]
            while expected and not expected[-1]:
                expected.pop()
            assert drawn.shown == expected
            assert (drawn.terminal.cursor.x) == 2
            assert drawn.draw(live, (at, 2)) == b""  # nothing changed, so nothing is written
        assert b"\x1b[2J" not in drawn.bytes
        assert b"\x1b[3J" not in drawn.bytes
    finally:
        drawn.close()


def _wrapped(lines: list[str], columns: int) -> list[str]:
    """What a terminal shows of finished lines, which it wraps itself."""
    terminal = pyte.HistoryScreen(columns, 200, history=10, ratio=0.5)
    pyte.Stream(terminal).feed("".join(f"{line}\r\n" for line in lines))
    return [row.rstrip() for row in terminal.display[: terminal.cursor.y]]


@pytest.mark.spec("T-M3.2")
def test_of_a_row_that_grew_only_its_end_is_written() -> None:
    drawn = Drawn(80, 24)
    drawn.draw(["the quick brown", "> "], (1, 2))
    assert drawn.draw(["the quick brown fox", "> "], (1, 2)) == b"\x1b[1A\x1b[13C fox\r\n\x1b[2C"
    drawn.close()


@pytest.mark.spec("T-X4.1")
def test_nothing_is_drawn_until_the_size_has_settled() -> None:
    drawn = Drawn(40, 10)
    drawn.draw(["> draft"], (0, 7), ["first"])
    for columns in (30, 20, 40):
        drawn.columns = columns
        drawn.time += SETTLE_SECONDS * 0.9
        assert drawn.draw(["> draft"], (0, 7), [f"at {columns}"]) == b""
    assert drawn.screen.is_settling
    drawn.time += SETTLE_SECONDS
    drawn.draw(["> draft"], (0, 7))
    assert drawn.shown == ["first", "at 30", "at 20", "at 40", "> draft"]
    drawn.draw(["> draft"], (0, 7), ["last"])
    assert drawn.shown == ["first", "at 30", "at 20", "at 40", "last", "> draft"]
    drawn.close()


@pytest.mark.spec("T-X4.1")
def test_lines_that_wait_for_the_size_are_written_at_the_end() -> None:
    drawn = Drawn(40, 10)
    drawn.screen.enter()
    drawn.draw(["> draft"], (0, 7))
    drawn.columns = 30
    drawn.draw(["> draft"], (0, 7), ["the answer"])
    drawn.screen.leave()
    drawn.draw([], (0, 0))  # reads what was written
    assert drawn.shown == ["the answer"]
    drawn.close()


@given(LETTERS, st.integers(1, 20))
def test_wrapped_rows_fit_and_keep_every_letter(text: str, columns: int) -> None:
    rows = wrap(STRONG(text), columns)
    widest = max(map(width, text), default=1)
    assert all(width(row) <= max(columns, widest) for row in rows)
    assert "".join(map(plain, rows)).replace(" ", "") == text.replace(" ", "")
    assert all(row.count("\x1b") % 2 == 0 for row in rows)


@given(LETTERS, st.integers(1, 20))
def test_clipped_rows_fit(text: str, columns: int) -> None:
    clipped = clip(STRONG(text), columns)
    assert width(clipped) <= columns
    assert clipped.endswith(RESET) or "\x1b" not in clipped
