"""The file tools: `read_file`, `list_dir`, `glob`, `grep`, and where allowed `write_file` and
`edit_file`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final, Protocol

from anyio.to_thread import run_sync

from fast_agent.errors import ToolError
from fast_agent.messages.message import EmbeddedResource, ImageContent, TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import plural
from fast_agent.tools.files.lookup import find_files, list_directory, search_files
from fast_agent.tools.permission import WRITES_FILES, PermissionRequest
from fast_agent.tools.result import said
from fast_agent.tools.tool import FileChange, RuntimeTool, ToolArguments, object_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.files.workspace import Place, Workspace
    from fast_agent.tools.permission import Permission
    from fast_agent.tools.tool import ToolContext

_MAX_MEDIA: Final = 10 * 1024 * 1024
_PATH: Final = ("string", "the file, absolute or relative to the working directory")
_FOLDER: Final = ("string", "the directory; without it, the working directory")
_ALL: Final = ("boolean", "also look into hidden and ignored directories")

READ: Final = ToolSpec(
    "read_file",
    "Read a file: text, an image (PNG, JPEG, GIF, WebP) or a PDF. Read before you edit.",
    object_schema(
        path=_PATH,
        offset=("integer", "the first line to read, from 1"),
        limit=("integer", "how many lines to read"),
        required=("path",),
    ),
)
LIST: Final = ToolSpec(
    "list_dir",
    "List a directory: directories end with `/`, files have their size.",
    object_schema(path=_FOLDER),
)
GLOB: Final = ToolSpec(
    "glob",
    "Find files by path, such as `**/*.py` or `src/*.{ts,tsx}`. Hidden files and those that"
    " `.gitignore` names are skipped.",
    object_schema(
        pattern=("string", "the glob; without `/` it is about names at any depth"),
        path=_FOLDER,
        all=_ALL,
        required=("pattern",),
    ),
)
GREP: Final = ToolSpec(
    "grep",
    "Search files for a regular expression, line by line. Gives `path:line:text`. Binary and hidden"
    " files and those that `.gitignore` names are skipped.",
    object_schema(
        pattern=("string", "the regular expression"),
        path=("string", "the file or directory to search; without it, the working directory"),
        glob=("string", "only files whose paths fit this glob, such as `*.py`"),
        ignore_case=("boolean", "whether case does not count"),
        context=("integer", "lines to show around each match"),
        only=("string", "`files` to list files with a match, `count` to count their lines"),
        limit=("integer", "most lines to return; 250 by default"),
        all=_ALL,
        required=("pattern",),
    ),
)
WRITE: Final = ToolSpec(
    "write_file",
    "Write a file; one that is there is replaced whole. Missing directories are made.",
    object_schema(
        path=_PATH, content=("string", "its whole new text"), required=("path", "content")
    ),
)
EDIT: Final = ToolSpec(
    "edit_file",
    "Replace a part of a text file. `old_string` must be in it exactly once, with its indentation,"
    " unless `replace_all` is set. Gives the difference.",
    object_schema(
        path=_PATH,
        old_string=("string", "the text to replace, as it is in the file"),
        new_string=("string", "the text that takes its place; may be empty"),
        replace_all=("boolean", "replace it wherever it is"),
        required=("path", "old_string", "new_string"),
    ),
)

_NEED_PATH: Final = WRITES_FILES | {READ.name}
_MEDIA_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


class EditorFiles(Protocol):
    """Text files as an editor has them, with changes that are not saved yet."""

    async def read_text(self, path: Path) -> str | None:
        """Return the text of a file; None where the editor reads none, or not this one."""
        ...

    async def write_text(self, path: Path, text: str) -> bool:
        """Write a file through the editor; False where it writes none.

        Raises:
            ToolError: The editor did not do it.
        """
        ...


@frozen
class FileGuard:
    """Which calls of file tools need a separate question.

    Args:
        permission: Who is asked.
        asks_writes: Whether writes to protected files are asked about here; False if the user
            is asked about every write.
        protects: Says whether a file decides what is run or loaded later.
    """

    permission: Permission
    asks_writes: bool
    protects: Callable[[Path], bool] | None = None

    def needs(self, place: Place, *, writes: bool) -> bool:
        """Return whether a user has to allow a call."""
        if not writes:
            return place.is_secret
        if not self.asks_writes:
            return False
        return place.is_secret or (self.protects is not None and self.protects(place.path))


class FileTool(RuntimeTool):
    """One of the file tools.

    Args:
        spec: Which one.
        workspace: Where it works.
        guard: What is asked about.
        editor: The editor whose files come before those of the disk; None where there is none.
    """

    __slots__ = ("_editor", "_guard", "_workspace", "spec")

    def __init__(
        self,
        spec: ToolSpec,
        workspace: Workspace,
        guard: FileGuard,
        editor: EditorFiles | None = None,
    ) -> None:
        self.spec = spec
        self._workspace = workspace
        self._guard = guard
        self._editor = editor

    def through(self, editor: EditorFiles) -> FileTool:
        """Return the tool with the files of an editor."""
        return FileTool(self.spec, self._workspace, self._guard, editor)

    @property
    def repeatable(self) -> bool:
        """Whether it only reads."""
        return not self._writes

    async def preview(self, arguments: JsonObject) -> FileChange | None:
        """Return what a call would change; None for one that changes nothing.

        Raises:
            ToolError: The call cannot be made.
        """
        if not self._writes:
            return None
        given = ToolArguments(self.spec, arguments)
        return await self._change(given, self._target(given))

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Do it; what goes wrong is an error result."""
        try:
            given = ToolArguments(self.spec, call.arguments)
            place = self._target(given)
            refused = await self._refusal(place, call, context)
            if refused is not None:
                return ToolResult.error(call.id, f"`{call.name}` was not run: {refused}")
            return ToolResult(call.id, await self._work(given, place))
        except ToolError as error:
            return ToolResult.error(call.id, said(error))

    @property
    def _writes(self) -> bool:
        return self.spec.name in WRITES_FILES

    def _target(self, given: ToolArguments) -> Place:
        path = given.text("path") or ""
        if not path.strip() and self.spec.name in _NEED_PATH:
            raise ToolError("`path` is empty")
        return self._workspace.resolve(path, writes=self._writes)

    async def _refusal(self, place: Place, call: ToolCall, context: ToolContext) -> str | None:
        if not self._guard.needs(place, writes=self._writes):
            return None
        request = PermissionRequest(
            call=call, context=context, source=self.source, server_name=None
        )
        return await self._guard.permission.ask(request)

    async def _work(self, given: ToolArguments, place: Place) -> tuple[Content, ...]:
        match self.spec.name:
            case READ.name:
                return (await self._read(given, place),)
            case LIST.name:
                text = await list_directory(place)
            case GLOB.name:
                pattern = given.required_text("pattern")
                text = await find_files(place, pattern, everything=given.flag("all"))
            case GREP.name:
                text = await self._search(given, place)
            case _:
                text = await self._write(given, place)
        return (TextContent(text),)

    async def _read(self, given: ToolArguments, place: Place) -> Content:
        first, count = given.whole("offset", 1, least=0), given.whole("limit", 0)
        text = None
        if self._editor is not None and place.path.suffix.lower() not in _MEDIA_SUFFIXES:
            text = await self._editor.read_text(place.path)
        if text is None:
            data = await run_sync(self._workspace.read, place)
            media = _media(data, place)
            if media is not None:
                return media
            text = _text(data, place)
        return TextContent(_lines(text, first or 1, count))

    async def _search(self, given: ToolArguments, place: Place) -> str:
        only = given.text("only") or "content"
        if only not in {"content", "files", "count"}:
            raise ToolError("`only` must be `files` or `count`")
        query: JsonObject = {
            "pattern": given.required_text("pattern"),
            "ignore_case": given.flag("ignore_case"),
            "context": min(given.whole("context", 0), 100),
            "only": only,
            "everything": given.flag("all"),
            "glob": given.text("glob") or None,
        }
        return await search_files(place, query, most=given.whole("limit", 250, least=1))

    async def _write(self, given: ToolArguments, place: Place) -> str:
        change = await self._change(given, place)
        if self._editor is None or not await self._editor.write_text(place.path, change.new):
            data = change.new.encode("utf-8", "surrogatepass")
            await run_sync(self._workspace.write, place, data)
        if change.old is None:
            count = len(change.new.splitlines())
            return f"wrote `{place.name}`: {plural(count, 'line')}"
        return change.diff().rstrip("\n") or f"`{place.name}` already has this content"

    async def _change(self, given: ToolArguments, place: Place) -> FileChange:
        if self.spec.name == WRITE.name:
            old = await self._old_text(place)
            return FileChange(place.path, place.name, old, given.text("content") or "")
        text = await self._current(place)
        new, _ = replaced(
            text,
            given.text("old_string") or "",
            given.text("new_string") or "",
            everywhere=given.flag("replace_all"),
        )
        return FileChange(place.path, place.name, text, new)

    async def _old_text(self, place: Place) -> str | None:
        """Return the text a write replaces; None where there is none yet."""
        try:
            return await self._current(place)
        except ToolError:
            return "" if await run_sync(place.path.exists) else None

    async def _current(self, place: Place) -> str:
        text = None if self._editor is None else await self._editor.read_text(place.path)
        if text is not None:
            return text
        return _text(await run_sync(self._workspace.read, place), place)


def file_tools(workspace: Workspace, access: FileAccess, guard: FileGuard) -> Iterator[FileTool]:
    """Make the file tools of an agent.

    Args:
        workspace: Where they work.
        access: Whether they may write.
        guard: What is asked about.
    """
    for spec in (READ, LIST, GLOB, GREP):
        yield FileTool(spec, workspace, guard)
    if access == "write":
        yield FileTool(WRITE, workspace, guard)
        yield FileTool(EDIT, workspace, guard)


def _media(data: bytes, place: Place) -> Content | None:
    """Read an image or a PDF, known by its first bytes."""
    kind = next((mime for magic, mime in _IMAGES if data.startswith(magic)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if data.startswith(b"%PDF-"):
        kind = "application/pdf"
    if kind is None:
        return None
    if len(data) > _MAX_MEDIA:
        raise ToolError(
            f"`{place.name}` holds {len(data):,} bytes; at most {_MAX_MEDIA:,} are read"
        )
    encoded = b64encode(data).decode()
    if kind == "application/pdf":
        return EmbeddedResource(place.path.as_uri(), kind, blob=encoded)
    return ImageContent(encoded, kind)


def _text(data: bytes, place: Place) -> str:
    if b"\0" in data:
        raise ToolError(f"`{place.name}` is a binary file of {len(data):,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ToolError(f"`{place.name}` is not UTF-8 text") from None


def _lines(text: str, first: int, count: int) -> str:
    if first == 1 and not count:
        return text or "(the file is empty)"
    lines = text.splitlines(keepends=True)
    if first > max(1, len(lines)):
        raise ToolError(f"`offset` is {first:,}, and the file has {len(lines):,} lines")
    chosen = lines[first - 1 : first - 1 + count] if count else lines[first - 1 :]
    part = "".join(chosen)
    end = "" if part.endswith("\n") or not part else "\n"
    return f"{part}{end}[lines {first:,} to {first - 1 + len(chosen):,} of {len(lines):,}]"


def replaced(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """Replace a part of a string that is found exactly as written.

    Args:
        text: The text.
        old: What is replaced. Its line ends may be LF where the text has CR LF.
        new: What takes its place.
        everywhere: Whether it may be there more than once.

    Returns:
        The new text, and how often it was replaced.

    Raises:
        ToolError: It is not there, or more than once.
    """
    if not old:
        raise ToolError("`old_string` is empty", hint="`write_file` writes a whole file")
    if old == new:
        raise ToolError("`old_string` and `new_string` are the same")
    if old not in text and "\r\n" in text:
        old, new = _with_crlf(old), _with_crlf(new)
    count = text.count(old)
    if not count:
        raise ToolError("`old_string` is not in the file", hint=_why_missing(text, old))
    if count > 1 and not everywhere:
        raise ToolError(
            f"`old_string` is in the file {count} times",
            hint="give more of the lines around it, or set `replace_all`",
        )
    return text.replace(old, new), count


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _why_missing(text: str, old: str) -> str:
    """Return what is nearly the same, so that the next try can succeed."""
    squeezed = " ".join(old.split())
    if squeezed and squeezed in " ".join(text.split()):
        return "it occurs with other whitespace or line endings: read the file, and copy the part"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    for number, line in enumerate(text.splitlines(), 1):
        if first and first in line:
            return f"its first line is at line {number}, but what follows differs: read it again"
    return "read the file, and copy the part as it is"
