"""Terminal client: a program in a pseudo-terminal, its echo timed key by key."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.process import BenchError, processor_seconds

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

_PIECE = 1 << 16
_PATIENCE = 60.0
_KEY_EVERY = 0.12
_KEYS = tuple(chr(code) for code in range(0x410, 0x450))
"""Letters that no answer holds, so that an echo is seen among what streams."""


class TerminalClient:
    """A program at a pseudo-terminal.

    Attributes:
        started: When it was started.
        written: What it wrote.
    """

    def __init__(self, pid: int, terminal: int) -> None:
        self.pid = pid
        self.started = time.perf_counter()
        self.written = bytearray()
        self._terminal = terminal

    def wait_for(self, text: str, start: int = 0) -> float:
        """Wait until a text was written; returns how long after the start, in seconds."""
        wanted, end = text.encode(), time.perf_counter() + _PATIENCE
        while wanted not in self.written[start:]:
            if time.perf_counter() > end or not self.read(1.0):
                tail = bytes(self.written[-300:])
                raise BenchError(f"the terminal never showed `{text}`: {tail!r}")
        return time.perf_counter() - self.started

    def settle(self, seconds: float = 0.5) -> None:
        """Read for a while."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._terminal, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal as large as this."""
        _resize(self._terminal, columns, rows)

    def echoes(self, until: str | None, most: int) -> list[float]:
        """Type letters and time their echoes, in milliseconds.

        Args:
            until: Ends when this was written.
            most: Ends after this many letters.
        """
        start, found = len(self.written), list[float]()
        while len(found) < most:
            if until is not None and until.encode() in self.written[start:]:
                break
            if len(found) % 24 == 23:
                self.send("\x15")  # an empty line again
            self.settle(_KEY_EVERY)
            key, mark, at = _KEYS[len(found) % len(_KEYS)], len(self.written), time.perf_counter()
            self.send(key)
            while key.encode() not in self.written[mark:]:
                if time.perf_counter() - at > _PATIENCE:
                    raise BenchError(f"the key `{key}` was never echoed")
                self.read(0.05)
            found.append((time.perf_counter() - at) * 1e3)
        return found

    def processor_seconds(self) -> float:
        """How much of a processor it has taken."""
        return processor_seconds(self.pid)

    def resident(self) -> float:
        """Its memory now, in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise BenchError("the memory of a process cannot be seen here")

    def read(self, seconds: float) -> bool:
        """Read what comes; returns False where the program has ended."""
        if select.select([self._terminal], [], [], seconds)[0]:
            try:
                data = os.read(self._terminal, _PIECE)
            except OSError:
                return False
            self.written += data
        return True


@contextmanager
def terminal(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    columns: int = 120,
    rows: int = 40,
) -> Generator[TerminalClient]:
    """Run a program at a pseudo-terminal, and kill it at the end."""
    words = [str(word) for word in command]
    gate, opened = os.pipe()
    pid, master = pty.fork()
    if pid == 0:
        os.read(gate, 1)  # until the terminal has its size
        os.chdir(cwd)
        os.execve(words[0], words, {**environ, "TERM": "xterm-256color"})
    _resize(master, columns, rows)
    os.write(opened, b"\0")
    try:
        yield TerminalClient(pid, master)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for one in (gate, opened, master):
            os.close(one)


def _resize(descriptor: int, columns: int, rows: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
