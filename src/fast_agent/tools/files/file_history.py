"""File history: what files held before file tools wrote them, so that a rewind can restore them."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from contextlib import suppress
from functools import partial
from hashlib import sha256
from logging import getLogger
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from anyio.to_thread import run_sync

from fast_agent.errors import ToolError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.tools.permission import WRITES_FILES
from fast_agent.tools.tool import PreviewedTool
from fast_agent.tools.toolbox import WrappedTool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.tools.files.workspace import Workspace
    from fast_agent.tools.tool import Tool, ToolContext

log = getLogger(__name__)

DIRECTORY: Final = "file-history"
MAX_FILE_BYTES: Final = 1 << 20
"""Largest former content that is kept."""
MAX_TOTAL_BYTES: Final = 64 << 20
"""Most that is kept for a session; later writes cannot be restored."""

Obstacle: TypeAlias = Literal["changed since", "not kept: too large", "outside the workspace"]


@frozen
class FileRestore:
    """A file that a rewind may restore.

    Args:
        path: The file, absolute.
        old: What it held before the turns; None where it did not exist.
        obstacle: Why it cannot be restored; None where it can.
    """

    path: Path
    old: bytes | None
    obstacle: Obstacle | None = None


@frozen
class _Write:
    turn_id: str
    path: str
    old: bytes | None
    new: str
    is_kept: bool = True


class FileHistory:
    """The writes of file tools in a conversation, oldest first.

    Args:
        workspace: Where files may be restored.
        directory: Where writes are kept for later runs, in a file for each session; None keeps them
            in memory alone.

    Attributes:
        turn_ids: The turns nothing else started, oldest first; writes belong to the last.
    """

    def __init__(self, workspace: Workspace, directory: Path | None = None) -> None:
        self._workspace = workspace
        self._directory = directory
        self._file: Path | None = None
        self._writes: list[_Write] = []
        self._bytes = 0
        self.turn_ids: list[str] = []

    def open(self, session_id: str | None) -> None:
        """Continue with the writes of a session; None starts without any. Blocks."""
        self._writes, self._bytes, self._file = [], 0, None
        if session_id is None or self._directory is None:
            return
        self._file = self._directory / f"{session_id}.jsonl"
        with suppress(OSError):
            for line in self._file.read_bytes().splitlines():
                with suppress(ValueError, KeyError, TypeError):  # a torn line of a crash
                    self._add(_read(line))

    def prune(self, exists: Callable[[str], bool]) -> None:
        """Remove the writes of sessions that are gone. Blocks.

        Args:
            exists: Returns whether a session of this id exists.
        """
        if self._directory is None:
            return
        with suppress(OSError):
            for path in self._directory.glob("*.jsonl"):
                if not exists(path.stem):
                    path.unlink(missing_ok=True)

    def tools(self, config: AgentConfig, tools: Iterable[Tool]) -> Iterator[Tool]:
        """Yield the tools of an agent; those that write files record what the files held."""
        del config
        for tool in tools:
            records = tool.source == "runtime" and tool.spec.name in WRITES_FILES
            yield _RecordedTool(tool, self) if records else tool

    def record(self, path: Path, old: bytes | None, new: bytes, *, existed: bool) -> None:
        """Record a write. Blocks.

        Args:
            path: The file, absolute.
            old: What it held; None where that is not known, or where it did not exist.
            new: What it holds now.
            existed: Whether it existed.
        """
        turn_id = self.turn_ids[-1] if self.turn_ids else ""
        size = 0 if old is None else len(old)
        is_kept = (
            (old is not None or not existed)
            and size <= MAX_FILE_BYTES
            and self._bytes + size <= MAX_TOTAL_BYTES
        )
        write = _Write(turn_id, str(path), old if is_kept else None, _digest(new), is_kept)
        self._add(write)
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            descriptor = os.open(self._file, flags, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(_line(write))
        except OSError as error:  # the write itself succeeded, and is restorable in this run
            log.warning("what `%s` held cannot be kept: %s", path, os_reason(error))

    def restores(self, turn_ids: Collection[str]) -> tuple[FileRestore, ...]:
        """Return the files that turns wrote, as they were before. Blocks.

        Args:
            turn_ids: The turns that are taken back.
        """
        first: dict[str, _Write] = {}
        last: dict[str, _Write] = {}
        for write in self._writes:
            if write.turn_id in turn_ids:
                first.setdefault(write.path, write)
                last[write.path] = write
        return tuple(self._restore(one, last[one.path]) for one in first.values())

    def restore(self, restores: Iterable[FileRestore]) -> list[Path]:
        """Restore files that nothing else changed since; return those restored. Blocks.

        Args:
            restores: The files, as `restores` returned them.

        Raises:
            ToolError: A file cannot be written; those before it are restored.
        """
        done: list[Path] = []
        for one in restores:
            if one.obstacle is not None:
                continue
            place = self._workspace.resolve(str(one.path), writes=True)
            if place.path != one.path:
                raise ToolError(f"`{one.path}` leads elsewhere now")
            if one.old is None:
                place.path.unlink(missing_ok=True)
            else:
                self._workspace.write(place, one.old)
            done.append(one.path)
        return done

    def _restore(self, first: _Write, last: _Write) -> FileRestore:
        from pathlib import Path

        path = Path(first.path)
        try:
            is_inside = self._workspace.resolve(first.path, writes=True).path == path
        except ToolError:
            is_inside = False
        if not is_inside:
            return FileRestore(path, None, "outside the workspace")
        if not first.is_kept:
            return FileRestore(path, None, "not kept: too large")
        now = content_of(path)
        if now is None or _digest(now) != last.new:
            return FileRestore(path, first.old, "changed since")
        return FileRestore(path, first.old)

    def _add(self, write: _Write) -> None:
        self._writes.append(write)
        self._bytes += 0 if write.old is None else len(write.old)


class _RecordedTool(WrappedTool):
    """A tool that writes a file; what the file held is recorded with each call."""

    __slots__ = ("_history",)

    def __init__(self, tool: Tool, history: FileHistory) -> None:
        super().__init__(tool)
        self._history = history

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call it, and record the write where it succeeds."""
        path = None
        if isinstance(self._tool, PreviewedTool):
            with suppress(ToolError):  # the call itself returns it as an error result
                change = await self._tool.preview(call.arguments)
                path = None if change is None else change.path
        if path is None:
            return await self._tool.call(call, context)
        old = await run_sync(content_of, path)
        existed = old is not None or await run_sync(os.path.lexists, path)
        result = await self._tool.call(call, context)
        new = await run_sync(content_of, path)
        if not result.is_error and new is not None and new != old:
            await run_sync(partial(self._history.record, path, old, new, existed=existed))
        return result


def content_of(path: Path) -> bytes | None:
    """Return what a file holds; None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _line(write: _Write) -> bytes:
    old = None if write.old is None else b64encode(write.old).decode("ascii")
    value = [write.turn_id, write.path, old, write.new, write.is_kept]
    return json.dumps(value).encode() + b"\n"


def _read(line: bytes) -> _Write:
    turn_id, path, old, new, is_kept = json.loads(line)
    content = None if old is None else b64decode(old)
    return _Write(str(turn_id), str(path), content, str(new), bool(is_kept))
