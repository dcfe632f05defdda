"""Status command: a command of the user's that draws the status row (`tui.status_command`).

It gets the state as a JSON object on standard input; the first line it writes is the row. It runs
beside the terminal, which never waits for it: until it answers, the previous row stays.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.errors import os_reason
from fast_agent.tools.shell.process_group import ProcessGroup
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.programs import in_shell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

_LIMIT_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0
"""A row is drawn again this long after the last one also where nothing changed."""
_MAX_LINE_BYTES: Final = 4096


class StatusCommand:
    """Runs the command when its input changed, and keeps the row it wrote.

    Args:
        clock: A clock that only goes forward, in seconds.
        changed: Called when the row is another one.
        note: Shows the user that the command failed.

    Attributes:
        row: What it wrote last, safe to draw; None where it wrote nothing.
        is_running: Whether it runs now.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        changed: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._note = note
        self._asked = ""
        self._ran_at = -_AGAIN_SECONDS
        self._failed = ""
        self.row: str | None = None
        self.is_running = False

    def is_due(self, command: str, facts: JsonObject) -> bool:
        """Whether the command is to run: it or its input changed, or the row is old."""
        if self.is_running:
            return False
        asked = f"{command}\n{json.dumps(facts)}"
        return asked != self._asked or self._clock() - self._ran_at >= _AGAIN_SECONDS

    async def run(self, command: str, facts: JsonObject, directory: Path) -> None:
        """Run the command once; what fails or takes too long leaves the row as it is.

        Args:
            command: The command line, for the shell.
            facts: Its input.
            directory: Where it runs.
        """
        self.is_running = True
        try:
            row, problem = await first_line(command, json.dumps(facts), directory)
        finally:
            self.is_running = False
            self._asked = f"{command}\n{json.dumps(facts)}"
            self._ran_at = self._clock()
        if problem and problem != self._failed:
            self._note(f"`tui.status_command` {problem}")
        self._failed = problem
        if row is not None and row != self.row:
            self.row = row
            self._changed()


async def first_line(
    command: str, facts: str, directory: Path, limit: float = _LIMIT_SECONDS
) -> tuple[str | None, str]:
    """Run a command, and return the first line it writes and what went wrong.

    Args:
        command: The command line, for the shell.
        facts: Its standard input.
        directory: Where it runs.
        limit: Maximum seconds until it is killed, with what it started.
    """
    try:
        group = await ProcessGroup.start(
            in_shell(command),
            cwd=directory,
            env=None,
            grace_seconds=0.0,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        return None, f"cannot be run: {os_reason(error)}"
    process = group.process
    written, status = b"", None
    try:
        with anyio.move_on_after(limit):
            if process.stdin is not None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await process.stdin.send(facts.encode() + b"\n")
                    await process.stdin.aclose()
            if process.stdout is not None:
                async for piece in process.stdout:
                    written += piece
                    if b"\n" in written or len(written) > _MAX_LINE_BYTES:
                        break
            if b"\n" not in written:
                status = await process.wait()
    finally:
        await (group.kill() if process.returncode is None else group.leave())
    line, end, _ = written[:_MAX_LINE_BYTES].partition(b"\n")
    if end or status == 0:
        return shown(line.decode("utf-8", "replace").rstrip("\r")), ""
    return None, f"took more than {limit:g} s" if status is None else f"ended with status {status}"
