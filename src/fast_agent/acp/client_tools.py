"""Client tools: files read and written through the client as its editor shows them, terminals.

Which of them a client offers, it says when it connects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.acp.params import child
from fast_agent.acp.updates import call_id
from fast_agent.errors import ToolError
from fast_agent.messages.message import TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.rpc.message import RemoteError
from fast_agent.text.frozen import frozen
from fast_agent.tools.files.file_tools import FileTool
from fast_agent.tools.result import said
from fast_agent.tools.shell.shell import DEFAULT_LIMITS, ShellTool
from fast_agent.tools.tool import ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from fast_agent.acp.updates import Updates
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import ToolCall
    from fast_agent.rpc.peer import Peer
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.tool import Tool, ToolContext, ToolSource


@frozen(kw_only=True)
class ClientSide:
    """What a client offers; what it does not speak of, it does not offer.

    Args:
        reads_files: Its text files may be read.
        writes_files: They may be written.
        terminal: Whether commands may run in a terminal of the client.
        forms: It asks the user with forms.
        links: It shows the user addresses to open.
    """

    reads_files: bool = False
    writes_files: bool = False
    terminal: bool = False
    forms: bool = False
    links: bool = False


def read_client_side(capabilities: JsonObject) -> ClientSide:
    """Read the capabilities a client declares."""
    files, asking = child(capabilities, "fs"), child(capabilities, "elicitation")
    return ClientSide(
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
        terminal=capabilities.get("terminal") is True,
        forms=isinstance(asking.get("form"), Mapping),
        links=isinstance(asking.get("url"), Mapping),
    )


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
            raise ToolError(f"the editor returned an error: {error.message}") from error
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
            raise ToolError("`path` is not a path")
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
            return ToolResult.error(call.id, said(error))
        except RemoteError as error:
            return ToolResult.error(call.id, f"the editor returned an error: {error.message}")
        return ToolResult(call.id, (TextContent(text),))


_CANCEL_GRACE_SECONDS: Final = 2.0
_MAX_BYTES: Final = 32 * 1024
_SHELL: Final = "/bin/sh"


class EditorTools:
    """Changes the tools an agent gets from the runtime.

    Args:
        peer: The client.
        session_id: The session.
        cwd: The session's directory.
        client: What the client offers.
        files: Its files.
        updates: Reports progress to the client.
        timeout_seconds: Longest run of a command, where the configuration sets one.
    """

    def __init__(
        self,
        peer: Peer,
        session_id: str,
        cwd: Path,
        client: ClientSide,
        files: ClientFiles,
        updates: Updates,
        timeout_seconds: float | None = None,
    ) -> None:
        self._peer = peer
        self._session_id = session_id
        self._cwd = cwd
        self._client = client
        self._files = files
        self._updates = updates
        self._timeout = timeout_seconds or DEFAULT_LIMITS.timeout_seconds

    def __call__(self, config: AgentConfig, tools: Iterable[Tool]) -> Iterator[Tool]:
        """Yield the editor's tools: its terminal runs commands, its file system holds files."""
        has_files = False
        for tool in tools:
            if isinstance(tool, ShellTool) and self._client.terminal:
                yield self._shell(config, tool)
            elif isinstance(tool, FileTool):
                has_files = True
                yield tool.through(self._files)
            else:
                yield tool
        if not has_files:
            yield from self._files.tools()

    def _shell(self, config: AgentConfig, tool: ShellTool) -> Tool:
        directory = self._cwd
        if config.cwd is not None:
            directory = (config.directory or self._cwd) / config.cwd
        return ClientShell(
            tool, self._peer, self._session_id, directory, self._updates, self._timeout
        )


class ClientShell:
    """The shell tool of a session whose client has terminals.

    Args:
        tool: The shell tool it takes the place of, for how the model sees it.
        peer: The client.
        session_id: The session.
        directory: Where commands run.
        updates: Shows the terminal in the tool call.
        timeout_seconds: Longest run of a command that asks for no other.
    """

    def __init__(
        self,
        tool: Tool,
        peer: Peer,
        session_id: str,
        directory: Path,
        updates: Updates,
        timeout_seconds: float,
    ) -> None:
        self.spec: ToolSpec = tool.spec
        self.source: ToolSource = "runtime"
        self.server_name = None
        self.repeatable = False
        self._peer = peer
        self._session_id = session_id
        self._directory = directory
        self._updates = updates
        self._timeout = timeout_seconds

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run the command of a call in a terminal; its output and exit code."""
        try:
            command, seconds = self._arguments(call)
            created = await self._ask(
                "create",
                command=_SHELL,
                args=["-c", command],
                cwd=str(self._directory),
                outputByteLimit=_MAX_BYTES,
            )
            terminal = created.get("terminalId")
            if not isinstance(terminal, str):
                raise RemoteError("it returned no terminal ID")
        except ToolError as error:
            return ToolResult.error(call.id, error.message)
        except RemoteError as error:
            return ToolResult.error(call.id, f"the editor did not open a terminal: {error.message}")
        shown: JsonObject = {"type": "terminal", "terminalId": terminal}
        self._updates.hold(call_id(context.turn_id, call.id), [shown])
        try:
            return await self._watched(call.id, terminal, seconds)
        except RemoteError as error:
            return ToolResult.error(call.id, f"the terminal was lost: {error.message}")
        finally:
            await self._release(terminal)

    async def _watched(self, number: str, terminal: str, seconds: float) -> ToolResult:
        ended: JsonObject | None = None
        with anyio.move_on_after(seconds):
            ended = await self._ask("wait_for_exit", terminalId=terminal)
        if ended is None:
            await self._ask("kill", terminalId=terminal)
        output = await self._ask("output", terminalId=terminal)
        return _result(number, output, ended, seconds)

    async def _release(self, terminal: str) -> None:
        with anyio.move_on_after(_CANCEL_GRACE_SECONDS, shield=True):
            try:
                await self._ask("release", terminalId=terminal)
            except RemoteError:
                return  # it is gone already

    async def _ask(self, what: str, **params: JsonValue) -> JsonObject:
        return await self._peer.request(
            f"terminal/{what}", {"sessionId": self._session_id, **params}
        )

    def _arguments(self, call: ToolCall) -> tuple[str, float]:
        command = call.arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            raise ToolError("`command` must be a shell command, as a string")
        seconds = call.arguments.get("timeout_seconds", self._timeout)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
            raise ToolError("`timeout_seconds` must be a number above 0")
        return command, float(seconds)


def _result(
    number: str, output: JsonObject, ended: JsonObject | None, seconds: float
) -> ToolResult:
    text = output.get("output")
    said = text if isinstance(text, str) else ""
    if output.get("truncated") is True:
        said = f"[the start is left out]\n{said}"
    code = None if ended is None else ended.get("exitCode")
    if ended is None:
        ending = f"[ended: it ran longer than {seconds:g} s]"
    elif code is None:
        ending = f"[killed by {ended.get('signal') or 'a signal'}]"
    else:
        ending = f"[exit code {code}]"
    newline = "" if not said or said.endswith("\n") else "\n"
    return ToolResult(
        number,
        (TextContent(f"{said}{newline}{ending}"),),
        is_error=code != 0,
        structured={"exit_code": code, "timed_out": ended is None},
    )
