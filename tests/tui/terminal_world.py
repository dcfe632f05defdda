"""The program at a terminal of a test: keys go in, and a screen of cells comes out."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyte
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from pyte.screens import Char

COMMAND: Final = Path(sys.executable).with_name("fast-agent")
_LEADER: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)


_END: Final = b"\0"
"""What a test writes behind the output of a program that ended."""


class Screen(pyte.HistoryScreen):
    """A screen that answers nothing, and takes the marks of synchronized output."""

    def write_process_input(self, data: str) -> None:
        """Answer no question of the program."""


class Terminal:
    """A program at a terminal: `with Terminal("go", …) as terminal:`.

    Args:
        arguments: The command line of `fast-agent`.
        columns: The width of the terminal.
        rows: Its height.
        environ: Variables over those of this process.
        program: Another program, in place of `fast-agent`.
        cwd: Where it runs; None is the directory of this process.

    Attributes:
        raw: Every byte the program wrote.
        slave: The program's side of the terminal.
    """

    def __init__(
        self,
        *arguments: str | Path,
        columns: int = 80,
        rows: int = 24,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str | Path] = (COMMAND,),
        cwd: Path | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        self.columns, self.rows = columns, rows
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        self.slave = slave
        self.screen = Screen(columns, rows, history=20_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._changed = threading.Condition()  # an RLock: properties use one another
        self._ended = False
        self._is_drained = False
        chosen = {"TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **(environ or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LEADER, *map(str, program), *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **chosen},
            cwd=cwd,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        self._reader.join(PATIENCE)
        os.close(self._master)

    @property
    def display(self) -> list[str]:
        """The rows of the screen, without blanks behind them."""
        with self._changed:
            return self._rows(self.screen.buffer[row] for row in range(self.screen.lines))

    @property
    def everything(self) -> list[str]:
        """The rows of the scrollback and of the screen."""
        with self._changed:
            top = self._rows(self.screen.history.top)
            return top + self.display

    def _rows(self, lines: Iterable[Mapping[int, Char]]) -> list[str]:
        # The second cell of a wide character is empty, which `Screen.display` of pyte fails on
        # where a narrow one was written over the first.
        columns = range(self.screen.columns)
        return ["".join(line[column].data for column in columns).rstrip() for line in lines]

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column of the cursor, from 0."""
        with self._changed:
            return self.screen.cursor.y, self.screen.cursor.x

    def send(self, keys: str | bytes) -> None:
        """Type."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self._master, data[:4096]) :]

    def line(self, text: str) -> None:
        """Type a line and Enter, once the whole line is in the editor."""
        self.send(text)
        self.wait_until(lambda: any(text[-20:] in row for row in self.display), f"typed {text!r}")
        self.send("\r")

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen or its scrollback shows texts."""
        for text in texts:
            self.wait_until(lambda text=text: any(text in row for row in self.everything), text)

    def wait_for_screen(self, text: str) -> None:
        """Wait until the screen itself shows a text."""
        self.wait_until(lambda: any(text in row for row in self.display), text)

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for something that the program's output brings about."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            with self._changed:
                self._changed.wait(0.5)
            shown = "\n".join(self.everything)
            assert time.monotonic() < end, f"{what!r} never came:\n{shown}\n{self.raw[-2000:]!r}"
            assert not (self._ended and not is_so()), f"{what!r} never came:\n{shown}"

    def wait_for_reader(self) -> None:
        """Wait until lines are read: what is typed before never answers a question."""
        self.wait_until(
            lambda: bool(termios.tcgetattr(self.slave)[3] & termios.ICANON), "a reader of lines"
        )

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal as large as this; a screen of pyte does not wrap its lines again."""
        with self._changed:
            self.columns, self.rows = columns, rows
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self) -> int:
        """Wait until the program ends and its output is read; returns its exit status."""
        status = self.process.wait(PATIENCE)
        if not self._is_drained:
            os.write(self.slave, _END)
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_drained or self._ended, PATIENCE)
        return status

    def modes(self) -> list[object]:
        """The modes of the terminal now."""
        return termios.tcgetattr(self.slave)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            with self._changed:
                if _END in data:
                    self._is_drained, data = True, data.replace(_END, b"")
                elif not data:
                    self._ended = True
                if data:
                    self.raw += data
                    self._stream.feed(data)
                self._changed.notify_all()
            if self._ended:
                return
