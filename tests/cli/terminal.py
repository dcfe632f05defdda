"""The command at a real terminal: what its standard output and standard error sent there, raw."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tty
from dataclasses import dataclass
from pathlib import Path
from select import select
from threading import Thread
from typing import TYPE_CHECKING

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND = Path(sys.executable).with_name("fast-agent")


@dataclass(frozen=True)
class Shown:
    """What a command wrote.

    Args:
        code: Its exit status.
        out: The bytes of standard output.
        err: Those of standard error.
    """

    code: int
    out: bytes
    err: bytes


class _Stream:
    """One stream of a process: a terminal in raw mode, or a pipe; read to its end."""

    def __init__(self, *, terminal: bool) -> None:
        self._master, self.slave = pty.openpty() if terminal else os.pipe()
        if terminal:
            tty.setraw(self.slave)  # or the terminal itself would write carriage returns
        self._pieces: list[bytes] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def read_to_end(self) -> bytes:
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), "a process still holds the stream"
        os.close(self._master)
        return b"".join(self._pieces)

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # how a terminal says that its other end was closed
                return
            if not piece:
                return
            self._pieces.append(piece)


def at_terminal(
    *arguments: str | Path,
    out: bool = True,
    err: bool = True,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
) -> Shown:
    """Run `fast-agent` and read what it writes.

    Args:
        arguments: The command line.
        out: Whether standard output is a terminal; else it is a pipe.
        err: Whether standard error is one.
        stdin: What it reads.
        environ: Variables over those of this process.
    """
    output, errors = _Stream(terminal=out), _Stream(terminal=err)
    process = subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=output.slave,
        stderr=errors.slave,
        env={**os.environ, **(environ or {})},
        start_new_session=True,
    )
    os.close(output.slave)
    os.close(errors.slave)
    try:
        process.communicate(stdin, timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return Shown(process.returncode, output.read_to_end(), errors.read_to_end())


def asked_at_terminal(*arguments: str | Path, typed: bytes) -> Shown:
    """Run `fast-agent` at a controlling terminal, which asks the person, and read all it shows.

    Args:
        arguments: The command line.
        typed: What the person types, once the terminal shows `: `.
    """
    master, slave = pty.openpty()
    # A leader of a session without a terminal gets the first one it opens.
    start = "import os, sys; os.open(sys.argv[1], os.O_RDWR); os.execv(sys.argv[2], sys.argv[2:])"
    process = subprocess.Popen(
        [sys.executable, "-c", start, os.ttyname(slave), COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    shown = b""
    try:
        while not shown.endswith(b": "):
            assert select([master], [], [], PATIENCE)[0], shown
            shown += os.read(master, 65536)
        os.write(master, typed)
        process.wait(PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(slave)
        os.close(master)
    return Shown(process.returncode, shown, b"")
