"""Process group: a command with everything it starts, ended as a whole.

A group that its program cannot end, since it is killed itself, is ended by the group guard. Other
programs of the same user are kept out of this process, where its keys are.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from errno import ENOENT
from functools import cache
from shutil import which
from typing import TYPE_CHECKING, Final

from anyio import BrokenResourceError, CancelScope, move_on_after, open_process, sleep

from fast_agent.tools.shell.group_guard import guard_group, release_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from anyio.abc import Process

_POLL_SECONDS: Final = 0.02
_KILL: Final = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
_HELD: Final = ("/bin/sh", "-c")
_HOLD: Final = 'read -r _ && exec "$@"'
"""Holds a command until a line comes, and never begins it if this program dies before that: nothing
would end a command that has begun and is not guarded yet."""


async def open_leader(
    command: Sequence[str],
    *,
    cwd: str | Path | None,
    env: Mapping[str, str] | None,
    stdin: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> Process:
    """Start a process as the leader of a group; its output is a stream.

    Args:
        command: The program and its arguments.
        cwd: Where it runs; None is where this program does.
        env: Its whole environment; None is that of this program.
        stdin: Where its input comes from.
        stderr: Where its errors go.

    Raises:
        OSError: It cannot be started.
        ValueError: An argument or a variable holds a NUL character.
    """
    # asyncio's loop refuses it; uvloop ends the text there, and would run less than was approved.
    if any("\0" in text for text in (*command, *(env or {}), *(env or {}).values())):
        raise ValueError("an argument or a variable holds a NUL character")
    return await open_process(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


class ProcessGroup:
    """A running process, the leader of its group and session.

    Processes it starts belong to the group too, unless they make a separate session.

    Args:
        process: The leader.
        grace_seconds: How long processes have to end when they are asked to, before they are
            killed.
    """

    __slots__ = ("_ended", "_grace_seconds", "process")

    def __init__(self, process: Process, grace_seconds: float) -> None:
        self.process = process
        self._grace_seconds = grace_seconds
        self._ended = False
        guard_group(process.pid)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str] | None,
        grace_seconds: float,
        stdin: int = subprocess.DEVNULL,
        stderr: int = subprocess.STDOUT,
    ) -> ProcessGroup:
        """Start a process; its output is a stream.

        Args:
            command: The program and its arguments.
            cwd: Where it runs.
            env: Its whole environment; None is that of this program.
            grace_seconds: How long processes have to end when they are asked to.
            stdin: `subprocess.PIPE` for an input that the caller writes; by default it has none.
            stderr: Where its errors go; by default into its output.

        Returns:
            The running process.

        Raises:
            OSError: It cannot be started.
            ValueError: The command holds a NUL character.
        """
        if which(command[0], path=(os.environ if env is None else env).get("PATH")) is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), command[0])
        held = (*_HELD, _HOLD if stdin == subprocess.PIPE else f"{_HOLD} </dev/null", "sh")

        is_held = os.name == "posix"

        async def started() -> ProcessGroup:
            process = await open_leader(
                [*held, *command] if is_held else command,
                cwd=cwd,
                env=env,
                stdin=subprocess.PIPE if is_held else stdin,
                stderr=stderr,
            )
            group = cls(process, grace_seconds)
            if is_held and process.stdin is not None:
                with suppress(BrokenResourceError):  # it was killed before it began
                    await process.stdin.send(b"\n")
                if stdin != subprocess.PIPE:
                    await process.stdin.aclose()
            return group

        starting = asyncio.ensure_future(started())
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The process may be running by now: nothing else would end it.
            with CancelScope(shield=True), suppress(OSError, ValueError):
                await (await starting).close()
            raise

    async def end(self, *, interrupt: bool = False) -> None:
        """End every process of the group: ask first, kill after the grace. Cannot be cancelled.

        Args:
            interrupt: Whether the group is asked by SIGINT first, as by Ctrl-C, and by SIGTERM
                after the grace; it is killed 1.5 times the grace after that.
        """
        if self._ended:
            return
        steps = [(signal.SIGTERM, self._grace_seconds)]
        if interrupt:
            steps = [(signal.SIGINT, self._grace_seconds)]
            steps.append((signal.SIGTERM, 1.5 * self._grace_seconds))
        with CancelScope(shield=True):
            for number, seconds in steps:
                if not self._signal(number):
                    break
                with move_on_after(seconds):
                    await self._gone()
                    break
            else:
                self._signal(_KILL)
            await self.process.wait()
        self._release()

    async def kill(self) -> None:
        """Kill every process of the group and close the streams. Cannot be cancelled."""
        with CancelScope(shield=True):
            self._signal(_KILL)
            await self.process.aclose()
        self._release()

    async def leave(self) -> None:
        """Close the streams; what a leader that ended left running stays. Cannot be cancelled."""
        self._release()
        with CancelScope(shield=True):
            await self.process.aclose()

    async def close(self, *, interrupt: bool = False) -> None:
        """End the group as `end` does and close the streams. Cannot be cancelled."""
        with CancelScope(shield=True):
            await self.end(interrupt=interrupt)
            await self.process.aclose()

    def _release(self) -> None:
        if not self._ended:
            self._ended = True
            release_group(self.process.pid)

    async def _gone(self) -> None:
        # A child that ended stays in the group until its parent has waited for it, so that the
        # leader has to be waited for while the rest is watched.
        await self.process.wait()
        while self._signal(0):  # noqa: ASYNC110 (no notification when a group is empty)
            await sleep(_POLL_SECONDS)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; return whether any process received it."""
        if sys.platform == "win32":  # there are no groups: the leader alone is ended
            if number and self.process.returncode is None:
                self.process.kill()
            return self.process.returncode is None
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


_PR_SET_DUMPABLE = 4
log = logging.getLogger(__name__)


@cache
def make_private() -> None:
    """Keep programs that are started from now on from reading the memory of this process.

    On Linux, `/proc/PID/environ` and the memory of a process are open to every process of its user,
    so a command could read the keys its own environment lacks. A process that is not dumpable
    belongs to root there. Programs it starts are dumpable again. What it costs: no core dumps, and
    debuggers and profilers need root to attach.
    """
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        log.warning("commands can read the environment of this program: %s", reason)


@cache
def warn_under_root() -> None:
    """Log, once in a process, that nothing can be kept from commands that root runs."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        log.warning("running as root: commands can read everything, the keys of this program too")
