"""Attachments: files named in a message as `@path`, sent with it."""

from __future__ import annotations

import base64
import mimetypes
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from fast_agent.errors import RunError
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
)
from fast_agent.text.safe_file import RefusedFileError, read_confined

if TYPE_CHECKING:
    from fast_agent.messages.message import Content

_NAMED: Final = re.compile(r"(?:(?<=\s)|^)@(\"[^\"]+\"|[^\s\"]+)")
_BEING_NAMED: Final = re.compile(r"(?:(?<=\s)|^)@(?:\"([^\"]*)|([^\s\"]*))\Z")
_MAX_TEXT: Final = 256 << 10
_MAX_MEDIA: Final = 8 << 20
_MAX_PASTED: Final = 10_000
_FILE_HEAD: Final = '<file path="'
_PDF: Final = "application/pdf"
_OUTPUT_HEAD: Final = "Output of commands I ran:\n"


def attached_files(text: str, workspace: Path) -> list[Path]:
    """Find the files a message names."""
    found: dict[Path, None] = {}
    for named in _NAMED.findall(text):
        name = named.strip('"')
        for candidate in (name, name.rstrip(".,;:!?)")):
            path = workspace / os.path.expanduser(candidate)  # noqa: PTH111
            if "\0" not in candidate and path.is_file():
                found[path] = None
                break
    return list(found)


def path_being_named(line: str) -> tuple[int, str] | None:
    """Return where the last `@` of a text begins, and the path behind it; None where it names none.

    Args:
        line: The text up to the caret.
    """
    found = _BEING_NAMED.search(line)
    return None if found is None else (found.start(), found[1] or found[2] or "")


def mention(path: str) -> str:
    """Name a file as a message does; the name of a directory may be continued.

    Args:
        path: Its path, without `"`.
    """
    if not re.search(r"\s", path):
        return f"@{path}"
    return f'@"{path}' if path.endswith("/") else f'@"{path}"'


def attachment_notes(text: str, workspace: Path) -> list[str]:
    """Return a note for each file a message names: its name, and its size or why it is refused."""
    notes: list[str] = []
    for path in attached_files(text, workspace):
        size = path.stat().st_size
        most = _most_bytes(_kind(path))
        kib = f"{size / 1024:,.1f} KiB"
        notes.append(f"{path.name} {kib}" if size <= most else f"{path.name} {kib}, too large")
    return notes


def with_attachments(text: str, workspace: Path) -> Message:
    """Make a message of text and of the files it names.

    Args:
        text: What was typed; `@path` names a file.
        workspace: Where relative paths start.

    Raises:
        RunError: A file is too large, or cannot be read.
    """
    paths = attached_files(text, workspace)
    if not paths:
        return Message.user(text)
    content: list[Content] = [TextContent(text)]
    content += [_content(path) for path in paths]
    return Message("user", tuple(content))


def with_shell_output(message: Message, output: str) -> Message:
    """Insert the output of commands the user ran before a message.

    Args:
        message: The message.
        output: The commands and what they wrote.
    """
    said = TextContent(f"{_OUTPUT_HEAD}```\n{output}```")
    return replace(message, content=(said, *message.content))


def typed_text(message: Message) -> str:
    """Return what was typed of a message: its text without files and output of commands."""
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    typed = [text for text in texts if not text.startswith((_FILE_HEAD, _OUTPUT_HEAD))]
    return "\n".join(typed or texts)


def _content(path: Path) -> Content:
    kind = _kind(path)
    most = _most_bytes(kind)
    try:
        real = path.resolve()
        data = read_confined(real.parent, real.name, most).data
    except RefusedFileError as refusal:
        raise RunError(
            f"`{path}` cannot be attached: it {refusal.message}",
            hint=f"a file may have {most // 1024:,} KiB",
        ) from refusal
    if most == _MAX_MEDIA:
        encoded = base64.b64encode(data).decode("ascii")
        if kind == _PDF:
            return EmbeddedResource(real.as_uri(), kind, blob=encoded)
        media = ImageContent if kind.startswith("image/") else AudioContent
        return media(encoded, kind)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"`{path}` cannot be attached: it is not UTF-8 text") from error
    return TextContent(f'{_FILE_HEAD}{path}">\n{text}\n</file>')


def _kind(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "text/plain"


def _most_bytes(kind: str) -> int:
    """Return the most bytes of a file that is attached; images, sounds and PDFs go as they are."""
    is_media = kind.startswith(("image/", "audio/")) or kind == _PDF
    return _MAX_MEDIA if is_media and kind != "image/svg+xml" else _MAX_TEXT


def pasted_files(text: str) -> list[Path]:
    """Return the files whose absolute paths make up a pasted text; empty where it is another text.

    Terminals paste the paths of files that are dropped on them quoted as for a shell; file managers
    copy them as `file:` addresses, a line for each.
    """
    if len(text) > _MAX_PASTED:
        return []
    try:
        words = shlex.split(text)
    except ValueError:
        return []
    found: list[Path] = []
    for word in words:
        try:
            address = urlsplit(word)
            if address.scheme == "file" and address.netloc in {"", "localhost"}:
                path = Path(unquote(address.path))
            else:
                path = Path(word).expanduser()
            is_named = path.is_absolute() and '"' not in str(path) and str(path).isprintable()
            if not is_named or not path.is_file():
                return []
        except (OSError, ValueError, RuntimeError):  # no name of a file, or no such home
            return []
        found.append(path)
    return found
