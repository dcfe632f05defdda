"""Processes that tests start, as Linux describes them."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Protocol

from tests.patience import until

from fast_agent.tools.shell.group_guard import NAME


def ending_with_parent(signal: str) -> tuple[str, ...]:
    """Return the words before a command that have Linux end it when its parent is killed.

    Where `setpriv` is not installed there are none: only a run that is killed leaves it behind.

    Args:
        signal: What it is sent, such as `KILL`.
    """
    program = shutil.which("setpriv")
    return () if program is None else (program, "--pdeathsig", signal)


def free_port() -> int:
    """Return a port of loopback that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class LocalServer(Protocol):
    """A server of tests that listens on a port of loopback."""

    port: int

    @property
    def log(self) -> str:
        """What it logged."""
        ...

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        ...


def start_on_free_port(server: LocalServer) -> None:
    """Start a server; on another port if a process took its port since it was chosen."""
    try:
        server.start()
    except AssertionError:
        if "already in use" not in server.log:
            raise
        server.port = free_port()
        server.start()


def unexpected(said: str) -> str:
    """Leave out of standard error what depends on the user and the speed of the machine.

    Root is warned that commands can read everything, and a wait of more than two seconds is a line.
    """
    expected = ("running as root: commands can read", "still waiting for server ")
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not any(one in line for one in expected))


def lives(pid: int) -> bool:
    """Return whether a process runs; one that ended and was not waited for does not."""
    return _parent(pid) is not None


async def ended(pid: int) -> None:
    """Wait for a process to end, whoever waits for it otherwise."""
    await until(lambda: not lives(pid))


def lives_with(variable: str) -> bool:
    """Return whether a process runs that was started with a variable of the environment."""
    sought = variable.encode() + b"\0"
    return any(sought in _environ(place) for place in Path("/proc").glob("[0-9]*"))


def children_of(pid: int) -> set[int]:
    """Return the processes that run and that one of the threads of another started.

    The guard of process groups is left out: it stays for as long as the program.
    """
    numbers = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
    return {number for number in numbers if _parent(number) == pid and not _is_guard(number)}


def _is_guard(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().endswith(NAME.encode() + b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _environ(place: Path) -> bytes:
    try:
        return (place / "environ").read_bytes()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return b""


def _parent(pid: int) -> int | None:
    """Return the process that started one; None where it has ended, maybe only just now."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state in "ZX" else int(parent)
