"""A process in a group of its own, ended with everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from anyio import CancelScope, move_on_after, open_process, sleep

from fast_agent.tools.group_guard import guard_group, release_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from anyio.abc import Process

_POLL_SECONDS = 0.02


class ProcessGroup:
    """A running process, the leader of its group and session.

    What it starts belongs to the group too, unless it makes a session of its own.

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
        env: Mapping[str, str],
        grace_seconds: float,
    ) -> ProcessGroup:
        """Start a process with no input, its output and errors in one stream.

        Args:
            command: The program and its arguments.
            cwd: Where it runs.
            env: Its whole environment.
            grace_seconds: How long processes have to end when they are asked to.

        Returns:
            The running process.

        Raises:
            OSError: It cannot be started.
            ValueError: The command holds a NUL character.
        """
        opening = asyncio.ensure_future(
            open_process(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        )
        try:
            return cls(await asyncio.shield(opening), grace_seconds)
        except asyncio.CancelledError:
            # The process may be running by now: nobody else would end it.
            with CancelScope(shield=True), suppress(OSError, ValueError):
                await cls(await opening, grace_seconds).close()
            raise

    async def end(self) -> None:
        """End every process of the group: ask first, kill after the grace. Cannot be cancelled."""
        if self._ended:
            return
        with CancelScope(shield=True):
            if self._signal(signal.SIGTERM):
                with move_on_after(self._grace_seconds):
                    await self._gone()
                self._signal(signal.SIGKILL)
            await self.process.wait()
        self._ended = True
        release_group(self.process.pid)

    async def close(self) -> None:
        """End the group and close the streams. Cannot be cancelled."""
        with CancelScope(shield=True):
            await self.end()
            await self.process.aclose()

    async def _gone(self) -> None:
        # A child that ended stays in the group until its parent has waited for it, so that the
        # leader has to be waited for while the rest is watched.
        await self.process.wait()
        while self._signal(0):  # noqa: ASYNC110 (nothing tells when a group is empty)
            await sleep(_POLL_SECONDS)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; tell whether there was anybody to take it."""
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True
