"""History files: read, written and checked; the ending of the name chooses the format."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import UNREADABLE_HISTORY, UNUSABLE_ORDER
from fast_agent.errors import HistoryError, TrustError, os_reason
from fast_agent.messages.delimited_codec import (
    DELIMITERS,
    delimited_places,
    near_delimiters,
    read_delimited_history,
    write_delimited_history,
)
from fast_agent.messages.history import CallIds, HistoryDocument, order_problems
from fast_agent.messages.json_message import json_places, read_json_history, write_json_history
from fast_agent.messages.json_text import Problem
from fast_agent.messages.message import AudioContent, Content, EmbeddedResource, ImageContent
from fast_agent.text.safe_file import (
    FileLock,
    RefusedFileError,
    confined_parts,
    read_confined,
    write_atomic,
)
from fast_agent.text.source import SourceError, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from fast_agent.messages.message import Message
    from fast_agent.text.source import Source

    Check = Callable[[Path], Path]

__all__ = [
    "MAX_BYTES",
    "HistoryDocument",
    "change_history",
    "check_history_file",
    "read_history",
    "write_history",
]

MAX_BYTES = 64 * 1024 * 1024
"""Largest history file, and largest file a resource section may name, in bytes."""


def read_history(
    path: Path, *, limit: int = MAX_BYTES, check: Check | None = None
) -> HistoryDocument:
    """Read a history file.

    Args:
        path: The file; `.json` in any letter case is JSON, every other name is delimited text.
        limit: Most bytes it may hold.
        check: Asked before it, and each file it names, is read; returns where the file ends. None
            reads what is named.

    Returns:
        What it holds.

    Raises:
        HistoryError: It cannot be read, or something in it is wrong; `diagnostics` has every
            problem with its place.
        TrustError: By `check`.
    """
    path = path if check is None else check(path)
    return _parse(path, _read(path, limit), check)


def write_history(path: Path, transcript: HistoryDocument) -> None:
    """Write a history file as a whole: a reader sees the old or the new one, never a part.

    Args:
        path: The file; its name chooses the format as in `read_history`. One that is there is
            replaced only if it is a history, or empty.
        transcript: What to write; `read_history` reads it back equal.

    Raises:
        HistoryError: A message cannot be written, the file is there and is not a history, or it
            cannot be written; the old file is as it was.
    """
    _check_replaceable(path)
    _write(path, transcript)


def change_history(path: Path, change: Callable[[HistoryDocument], HistoryDocument]) -> None:
    """Read a history file and write it changed; the old text is read and parsed once.

    Args:
        path: The file; one that is missing or empty is read as an empty history.
        change: Returns what to write.

    Raises:
        HistoryError: The file is not a history, something in it is wrong, or it cannot be written;
            it is then as it was.
    """
    if not path.exists():
        _write(path, change(HistoryDocument()))
        return
    source = _read(path, MAX_BYTES)
    before = _parse(path, source) if source.text.strip() else HistoryDocument()
    if source.text.strip() and not _is_json(path) and not _has_delimiter(source):
        raise _no_history(path)
    _write(path, change(before))


def _write(path: Path, transcript: HistoryDocument) -> None:
    whole = write_json_history if _is_json(path) else write_delimited_history
    text = whole(transcript)
    try:
        write_atomic(path, text.encode())
    except OSError as error:
        reason = os_reason(error)
        raise HistoryError(f"history `{path}` cannot be written: {reason}") from error


def check_history_file(
    path: Path, *, shown: str | None = None, check: Check | None = None
) -> tuple[Diagnostic, ...]:
    """Find everything wrong with a history file, for a check before anything runs.

    Args:
        path: The file.
        shown: The path put into the diagnostics; the path itself when None.
        check: Asked before each file is read, as for `read_history`.

    Returns:
        Errors where it cannot be read; else warnings about an order models refuse and about lines
        that almost are delimiters.
    """
    try:
        path = path if check is None else check(path)
        source = _read(path, MAX_BYTES, shown)
        transcript = _parse(path, source, check)
    except HistoryError as error:
        return error.diagnostics
    except TrustError as error:
        where = str(path) if shown is None else shown
        return (Diagnostic(UNREADABLE_HISTORY.code, error.message, where, hint=error.hint),)
    disorder = order_problems(transcript.messages)
    found: list[Problem] = []
    if disorder:
        places = json_places(source) if _is_json(path) else delimited_places(source)
        hint = "models reject this order; fix or remove the message"
        found += [
            Problem(
                UNUSABLE_ORDER, f"message {item.index} {item.reason}", *places[item.index], hint
            )
            for item in disorder
        ]
    if not _is_json(path):
        found += near_delimiters(source)
    return tuple([problem.diagnostic(source) for problem in found])


def _check_replaceable(path: Path) -> None:
    """Raise HistoryError for a file that is there and is not a history."""
    if not path.exists():
        return
    try:
        source = read_source(path, limit=MAX_BYTES)
        is_history = not source.text.strip() or _is_json(path) or _has_delimiter(source)
        if _is_json(path) and source.text.strip():
            read_json_history(source)
    except (SourceError, HistoryError):
        is_history = False
    if not is_history:
        raise _no_history(path)


def _has_delimiter(source: Source) -> bool:
    """Return whether a text was written as a history; a reader takes any text as one message."""
    return source.text.lstrip().startswith(DELIMITERS)


def _no_history(path: Path) -> HistoryError:
    return HistoryError(
        f"`{path}` is not a history and was not replaced",
        hint="name another file, or move this one away",
    )


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _read(path: Path, limit: int, shown: str | None = None) -> Source:
    try:
        return read_source(path, shown=shown, limit=limit)
    except SourceError as error:
        name = str(path) if shown is None else shown
        problem = Diagnostic(
            UNREADABLE_HISTORY.code,
            f"history `{name}` cannot be read: {error.message}",
            name,
            error.span,
            hint=error.hint,
        )
        raise HistoryError(problem.message, hint=error.hint, diagnostics=(problem,)) from error


def _parse(path: Path, source: Source, check: Check | None = None) -> HistoryDocument:
    if _is_json(path):
        return read_json_history(source)
    return read_delimited_history(source, lambda name: attach_file(path.parent, name, check))


def attach_file(
    directory: Path,
    name: str,
    check: Check | None = None,
    address: str = "resource://history",
) -> Content:
    """Read a file as a content block.

    Args:
        directory: Where the name starts from, and what it may not leave.
        name: A relative path.
        check: Asked before it is read.
        address: What the address of a resource starts with.

    Returns:
        An image or sound for a file whose name says so, else a resource: of text where the file is
        UTF-8, of base64 where it is not.

    Raises:
        HistoryError: The name leaves the directory, or the file is missing or too large.
    """
    from base64 import b64encode
    from urllib.parse import quote

    if check is not None:
        check(directory / name)
    try:
        data = read_confined(directory, name, MAX_BYTES).data
        shown = "/".join(confined_parts(name))
    except RefusedFileError as error:
        raise HistoryError(
            f"`{name}` {error.message}", hint="name a file below the directory of the history"
        ) from error
    media_type = media_type_of(name)
    kind = (media_type or "").partition("/")[0]
    if media_type is not None and kind in {"image", "audio"} and media_type != "image/svg+xml":
        block = ImageContent if kind == "image" else AudioContent
        return block(b64encode(data).decode(), media_type)
    uri = f"{address}/{quote(shown)}"
    try:
        return EmbeddedResource(uri, media_type or "text/plain", data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        blob = b64encode(data).decode()
        return EmbeddedResource(uri, media_type or "application/octet-stream", blob=blob)


_BY_ENDING = {
    ".csv": "text/csv",
    ".css": "text/css",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def media_type_of(name: str) -> str | None:
    """Return the media type of a file's name.

    Args:
        name: A file name or path.

    Returns:
        The media type; None for an ending that is not in the table.
    """
    stem, dot, ending = name.rpartition(".")
    return _BY_ENDING.get(f".{ending.lower()}") if dot and stem else None


WAIT = 30.0
"""How long to wait for another process that merges into the same file, in seconds."""


def merge_into(path: Path, messages: Iterable[Message], *, wait: float = WAIT) -> None:
    """Append messages to a history file as one block; blocks others append concurrently are kept.

    It reads and writes the whole file and waits for the disk; call it from a worker thread.

    Args:
        path: The file; made where it is missing. Its name chooses the format. A link is followed.
        messages: What to add. Call ids that are in use in the file are given new ones.
        wait: How long to wait for another process, in seconds.

    Raises:
        HistoryError: The file cannot be read or written, something in it is wrong, or another
            process holds it too long; it is then as it was.
    """
    target = path.resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        taken = lock.take(wait=wait)
    except OSError as error:
        reason = os_reason(error)
        raise HistoryError(f"history `{path}` cannot be merged into: {reason}") from error
    if not taken:
        raise HistoryError(
            f"history `{path}` has been in use by process {lock.holder()} for {wait:g} s",
            hint="end that process, or use a separate file for the card",
        )
    try:
        change_history(target, lambda before: _with_messages(before, messages))
    finally:
        lock.release()


def _with_messages(before: HistoryDocument, messages: Iterable[Message]) -> HistoryDocument:
    ids = CallIds()
    ids.note(before.messages)
    return replace(before, messages=(*before.messages, *ids.own_block(messages)))
