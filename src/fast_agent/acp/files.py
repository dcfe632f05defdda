"""Files: tools that read and write text files through the client, as its editor shows them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ToolError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.rpc.message import RemoteError
from fast_agent.tools.result import error_result, said
from fast_agent.tools.tool_arguments import ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from fast_agent.acp.client_side import ClientSide
    from fast_agent.messages.message import ToolCall
    from fast_agent.rpc.peer import Peer
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.tool import Tool, ToolContext, ToolSource

MAX_CHARACTERS: Final = 200_000
"""Most characters of one file a model is given at once."""

_PATH = ("string", "the file, absolute or relative to the working directory")

_READ = ToolSpec(
    "read_text_file",
    "Read a text file as the editor has it, with changes that are not saved yet.",
    object_schema(
        path=_PATH,
        line=("integer", "the first line to read, from 1"),
        limit=("integer", "how many lines to read"),
        required=("path",),
    ),
)
_WRITE = ToolSpec(
    "write_text_file",
    "Write a text file through the editor; a file that is there is replaced whole.",
    object_schema(path=_PATH, content=("string", "its whole new text"), required=("path",)),
)


class ClientFiles:
    """The text files of a client.

    Args:
        peer: The client.
        session_id: The session.
        cwd: Where relative paths start.
        client: What the client offers.
    """

    def __init__(self, peer: Peer, session_id: str, cwd: Path, client: ClientSide) -> None:
        self._peer = peer
        self._session_id = session_id
        self._cwd = cwd
        self._client = client

    def tools(self) -> Iterator[Tool]:
        """Yield the tools that the client's capabilities allow."""
        if self._client.reads_files:
            yield _FileTool(_READ, self._read, repeatable=True)
        if self._client.writes_files:
            yield _FileTool(_WRITE, self._write, repeatable=False)

    def resolve(self, path: JsonValue) -> Path | None:
        """Return the absolute path of an argument, links resolved; None if it names no file."""
        if not isinstance(path, str) or not path.strip() or "\0" in path:
            return None
        return Path(os.path.realpath(self._cwd / path))

    async def difference(self, arguments: JsonObject) -> JsonObject | None:
        """Show what a write would change; None where it would write nothing."""
        path, content = self.resolve(arguments.get("path")), arguments.get("content", "")
        if path is None or not isinstance(content, str):
            return None
        old: str | None = None
        if self._client.reads_files:
            try:
                old = await self._ask_for(path)
            except RemoteError:
                old = None  # there is no such file yet
        return file_diff(path, old, content)

    async def read_text(self, path: Path) -> str | None:
        """Return the text of a file; see `EditorFiles.read_text`."""
        if not self._client.reads_files:
            return None
        try:
            return await self._ask_for(path)
        except RemoteError:
            return None  # an image, or none that the editor has: the disk decides

    async def write_text(self, path: Path, text: str) -> bool:
        """Write a file through the editor; see `EditorFiles.write_text`."""
        if not self._client.writes_files:
            return False
        try:
            await self._send(path, text)
        except RemoteError as error:
            raise ToolError(f"the editor did not do it: {error.message}") from error
        return True

    async def _read(self, arguments: ToolArguments) -> str:
        path = self._path(arguments)
        more: dict[str, JsonValue] = {}
        for name in ("line", "limit"):
            number = arguments.whole(name, 0)
            if number:
                more[name] = number
        text = await self._ask_for(path, **more)
        if len(text) <= MAX_CHARACTERS:
            return text
        left = len(text) - MAX_CHARACTERS
        return f"{text[:MAX_CHARACTERS]}\n[{left:,} characters more; use `line` and `limit`]"

    async def _write(self, arguments: ToolArguments) -> str:
        path, content = self._path(arguments), arguments.text("content") or ""
        await self._send(path, content)
        return f"wrote {len(content):,} characters to {path}"

    async def _send(self, path: Path, content: str) -> None:
        params: JsonObject = {"sessionId": self._session_id, "path": str(path), "content": content}
        await self._peer.request("fs/write_text_file", params)

    async def _ask_for(self, path: Path, **more: JsonValue) -> str:
        params: JsonObject = {"sessionId": self._session_id, "path": str(path), **more}
        answer = await self._peer.request("fs/read_text_file", params)
        content = answer.get("content")
        if not isinstance(content, str):
            raise RemoteError("the client gave no text")
        return content

    def _path(self, arguments: ToolArguments) -> Path:
        path = self.resolve(arguments.required_text("path"))
        if path is None:
            raise ToolError("`path` is no path")
        return path


def file_diff(path: Path, old: str | None, new: str) -> JsonObject:
    """Return a change of a file as editors show it."""
    return {"type": "diff", "path": str(path), "oldText": old, "newText": new}


class _FileTool:
    """One of the tools."""

    def __init__(
        self, spec: ToolSpec, work: Callable[[ToolArguments], Awaitable[str]], *, repeatable: bool
    ) -> None:
        self.spec = spec
        self.source: ToolSource = "runtime"
        self.server_name = None
        self.repeatable = repeatable
        self._work = work

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Do it; what goes wrong is an error result."""
        del context
        try:
            text = await self._work(ToolArguments(self.spec, call.arguments))
        except ToolError as error:
            return error_result(call.id, said(error))
        except RemoteError as error:
            return error_result(call.id, f"the editor did not do it: {error.message}")
        return ToolResult(call.id, (TextContent(text),))
