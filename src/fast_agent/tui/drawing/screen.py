"""Screen: the one writer of the terminal.

The rows at the bottom, the live area, are drawn again when they change. What is finished goes above
them once, into the terminal's own scrollback, and is never written again. Everything is relative to
where the cursor is: nothing is known of the rest of the screen, and nothing there is touched.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from struct import unpack
from typing import TYPE_CHECKING, Final

from fast_agent.tui.drawing.rows import RESET, clip, height, is_measured, width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_USUAL_CELL: Final = (8, 16)
SYNC_ON: Final = "\x1b[?2026h"
SYNC_OFF: Final = "\x1b[?2026l"
_MODES_ON: Final = "\x1b[?2004h\x1b[?1004h\x1b[>4;1m"
"""Bracketed paste, reports of the focus, and keys with modifiers that have no sequence else."""
_MODES_OFF: Final = "\x1b[>4;0m\x1b[?1004l\x1b[?2004l\x1b[?25h"
SETTLE_SECONDS: Final = 0.3
"""How long after a change of the size nothing is drawn.

In a series of resizes tmux reports a new size up to 0.25 s after it wrapped its rows again. What is
drawn in between counts rows by a size that has passed, and erases finished lines or doubles others.
"""
SLOW_SECONDS: Final = 0.05
"""A write that takes longer than this is to a slow terminal."""


def terminal_size() -> tuple[int, int]:
    """Return columns and rows of the terminal of standard output; 80 and 24 where there is none."""
    try:
        size = os.get_terminal_size(1)
    except OSError:
        return 80, 24
    return max(1, size.columns), max(1, size.lines)


class Screen:
    """Draws the live area, and commits finished lines above it.

    Args:
        descriptor: The terminal.
        size: Gives its columns and rows.
        clock: A clock that only goes forward, in seconds.

    Attributes:
        slow: Whether the last write was slow.
    """

    def __init__(
        self,
        descriptor: int,
        size: Callable[[], tuple[int, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._descriptor = descriptor
        self._size = size
        self._clock = clock
        self._rows: list[str] = []
        self._cursor = (0, 0)
        self._drawn_at = self._seen = size()
        self._resized = -SETTLE_SECONDS
        self._held: list[str] = []
        self._open = False
        self.slow = False

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows now."""
        return self._size()

    @property
    def cell(self) -> tuple[int, int]:
        """Width and height of a cell in pixels; usual ones where the terminal does not say."""
        with suppress(OSError, ImportError):
            import fcntl
            import termios

            reply = fcntl.ioctl(self._descriptor, termios.TIOCGWINSZ, bytes(8))
            rows, columns, width, height = unpack("HHHH", reply)
            if rows and columns and width >= columns and height >= rows:
                return width // columns, height // rows
        return _USUAL_CELL

    @property
    def is_settling(self) -> bool:
        """Whether the size changed a moment ago; lines wait until it has been the same a while."""
        size, now = self.size, self._clock()
        if size != self._seen:
            self._seen, self._resized = size, now
        return now - self._resized < SETTLE_SECONDS

    def enter(self) -> None:
        """Set the modes of the terminal that the editor needs."""
        self._write(_MODES_ON)
        self._open = True

    def leave(self) -> None:
        """Erase the live area and restore the modes; safe to call twice."""
        if not self._open:
            return
        self._open = False
        out = [*self._erased(self.size[0]), *self._released(), _MODES_OFF]
        self._forget()
        with suppress(OSError):  # the terminal may be gone
            self._write("".join(out))

    def forget(self) -> None:
        """Take it that the cursor is at the start of an empty row, as after another program."""
        self._forget()

    def send(self, sequence: str) -> None:
        """Send a sequence that draws nothing, such as one for the clipboard."""
        self._write(sequence)

    def clear(self) -> None:
        """Move what is on the screen into the scrollback; the live area is drawn at the top."""
        _, rows = self.size
        out = [*self._erased(self.size[0]), *self._released(), "\n" * (rows - 1), "\x1b[H"]
        self._write("".join(out))
        self._forget()

    def draw(
        self,
        rows: Sequence[str],
        cursor: tuple[int, int],
        above: Sequence[str] = (),
    ) -> None:
        """Draw the live area.

        Args:
            rows: Its rows; those that do not fit are left out from the top.
            cursor: Row and column of the caret, from 0.
            above: Finished lines to commit above it, of any width.
        """
        self._held += above
        if self.is_settling:
            return
        columns, most = size = self.size
        fresh, (row, column) = _fitted(rows, cursor, columns, most)
        out: list[str] = []
        if size != self._drawn_at:  # a lower terminal drops the rows below the cursor
            out += self._erased(columns)
            self._drawn_at = size
            self._forget()
        commits = bool(self._held)
        if commits:
            out += self._erased()
            self._forget()
            out += self._released()
        at = self._cursor
        out += self._changes(fresh, columns)
        if not out and at == (row, column):
            return
        out += _move(self._cursor, (row, column))
        self._rows, self._cursor = fresh, (row, column)
        text = "".join(out)
        self._write(f"{SYNC_ON}{text}{SYNC_OFF}" if commits else text)

    def _changes(self, fresh: list[str], columns: int) -> list[str]:
        """Write the rows that differ; leaves the cursor behind what was written."""
        out: list[str] = []
        old = self._rows
        known = max(len(old), 1)  # the row of the cursor is there
        for index, row in enumerate(fresh):
            before = old[index] if index < len(old) else ""
            if index < known and before == row:
                continue
            start, rest = _difference(before if index < len(old) else None, row)
            if index < known:
                out += _move(self._cursor, (index, start))
            else:
                out += [*_move(self._cursor, (known - 1, 0)), "\r\n"]
                known = index + 1
            end = width(row)
            out.append(rest)
            # At the right edge a terminal holds the cursor back, and would erase the last column.
            if end < columns and width(before) > end:
                out.append("\x1b[K")
            self._cursor = (index, min(end, columns - 1))
            if end >= columns or not is_measured(row):
                out.append("\r")
                self._cursor = (index, 0)
        if len(old) > len(fresh):
            out += [*_move(self._cursor, (len(fresh), 0)), "\r\x1b[J"]
            self._cursor = (len(fresh), 0)
        return out

    def _erased(self, columns: int | None = None) -> list[str]:
        """Erase the live area; the cursor is then where its first row was.

        Where the first row is that of the screen, tmux would move all of it into the scrollback if
        the rest were erased from there.
        """
        out = [*self._to_top(columns), "\r\x1b[K"]
        if len(self._rows) > 1:
            out.append("\r\n\x1b[J\x1b[1A")
        return out

    def _to_top(self, columns: int | None = None) -> list[str]:
        """Move to the first row of the live area, however many rows the old ones take now."""
        row, column = self._cursor
        if columns is not None:
            row = sum(height(one, columns) for one in self._rows[:row]) + column // columns
        return [f"\x1b[{row}A"] if row else []

    def _released(self) -> list[str]:
        held, self._held = self._held, []
        return [f"{line}\r\n" for line in held]

    def _forget(self) -> None:
        self._rows, self._cursor = [], (0, 0)

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        started = self._clock()
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                self._wait()
        self.slow = self._clock() - started > SLOW_SECONDS

    def _wait(self) -> None:
        from select import select

        select([], [self._descriptor], [], 1.0)


def _fitted(
    rows: Sequence[str], cursor: tuple[int, int], columns: int, most: int
) -> tuple[list[str], tuple[int, int]]:
    """Clip rows to the screen, so that each takes one and all are seen."""
    row, column = cursor
    first = max(0, min(row, len(rows) - max(1, most)))
    kept = [clip(one, columns) for one in rows[first : first + max(1, most)]] or [""]
    return kept, (min(row - first, len(kept) - 1), max(0, min(column, columns - 1)))


def _difference(before: str | None, row: str) -> tuple[int, str]:
    """Return the column a row differs from, and what to write there."""
    grew = before and row.startswith(before) and not _is_inside_style(before)
    if before and grew and is_measured(row):
        return width(before), row[len(before) :]
    return 0, row


def _is_inside_style(text: str) -> bool:
    escape = text.rfind("\x1b[")
    return escape >= 0 and not text.startswith(RESET, escape)


def _move(place: tuple[int, int], wanted: tuple[int, int]) -> list[str]:
    """Move the cursor within the rows of the live area.

    Downwards by line feeds: where a resize that is not known yet dropped the rows below the cursor,
    they make new ones. A cursor that stopped at the last row would be taken for a lower one, and
    what is erased next would be a finished line.
    """
    out: list[str] = []
    down, column = wanted[0] - place[0], place[1]
    if down > 0:
        out.append("\r" + "\n" * down)
        column = 0
    elif down:
        out.append(f"\x1b[{-down}A")
    if wanted[1] == 0 and column != 0:
        out.append("\r")
    elif wanted[1] != column:
        right = wanted[1] - column
        out.append(f"\x1b[{abs(right)}{'C' if right > 0 else 'D'}")
    return out
