"""Source files: text that knows where it came from, and why a file could not be read as text."""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.errors import FastAgentError
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from pathlib import Path


MAX_BYTES = 1024 * 1024
"""Largest file read as source, in bytes, unless a caller says otherwise."""

SourceReason: TypeAlias = Literal["missing", "not-a-file", "unreadable", "too-large", "encoding"]

Signature: TypeAlias = tuple[int, int, int, int, int]
"""By what a change of a file is noticed: time of change in nanoseconds, size in bytes, inode, owner
and mode."""

_UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class SourceError(FastAgentError):
    """A file could not be read as text.

    Args:
        message: What is wrong, without the path.
        reason: The kind of failure, for callers that treat them differently.
        hint: What to do, or None.
        span: The place of the first wrong byte, where that is known.
        line: The text of its line as far as it can be guessed, or None.
    """

    def __init__(
        self,
        message: str,
        reason: SourceReason,
        *,
        hint: str | None = None,
        span: Span | None = None,
        line: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason: SourceReason = reason
        self.span = span
        self.line = line


@frozen
class Source:
    """A text and the path it is shown under.

    Line ends are line feeds; there is no byte order mark.

    Args:
        path: The file, as the user named it.
        text: The whole text.
        signature: The file's signature before it was read; None if it is not a file.
        is_made: Whether the text was made of that of the file, so that its lines are not those of
            the file.
    """

    path: str
    text: str
    signature: Signature | None = field(default=None, repr=False, compare=False)
    is_made: bool = field(default=False, repr=False, compare=False)
    _starts: list[int] = field(default_factory=list[int], init=False, repr=False, compare=False)

    @classmethod
    def of(cls, path: str, text: str) -> Source:
        """Make a source from text that may still have a byte order mark and CRLF line ends."""
        return cls(path, text.removeprefix("\ufeff").replace("\r\n", "\n"))

    def line(self, number: int) -> str:
        """Return one line without its line end.

        Args:
            number: Line number, from 1.

        Returns:
            The line; empty beyond the last one.
        """
        starts = self._line_starts()
        if not 1 <= number <= len(starts):
            return ""
        start = starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def position(self, offset: int) -> Position:
        """Return the position of a character.

        Args:
            offset: Index into `text`, from 0; clipped to the text.

        Returns:
            Its line and column.
        """
        offset = max(0, min(offset, len(self.text)))
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def offset(self, position: Position) -> int:
        """Return the index into `text` of a position; the inverse of `position`."""
        starts = self._line_starts()
        line = max(1, min(position.line, len(starts)))
        return min(starts[line - 1] + position.column - 1, len(self.text))

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts.append(0)
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        return self._starts


def read_source(path: Path | str, *, shown: str | None = None, limit: int = MAX_BYTES) -> Source:
    """Read a UTF-8 text file; only regular files, so that a pipe or a device never blocks.

    Args:
        path: The file.
        shown: The path put into the `Source`; the path itself when None.
        limit: Largest size, in bytes.

    Returns:
        The text, without a byte order mark and with line feeds as line ends.

    Raises:
        SourceError: The file is missing, is not a regular file, may not be read, is larger than
            `limit`, or is not UTF-8.
    """
    data, facts = _read_bytes(path, limit)
    return Source(str(path) if shown is None else shown, decode(data), signature_of(facts))


def signature_of(facts: os.stat_result) -> Signature:
    """Return the signature of a file with these facts of `os.stat`."""
    return facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_uid, facts.st_mode


def signature_at(path: str) -> Signature | None:
    """Return the signature of a file; None if it does not exist or cannot be checked."""
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 - fast
    except (OSError, ValueError):
        return None


def decode(data: bytes) -> str:
    """Decode the bytes of a source file.

    Args:
        data: The bytes of the file.

    Returns:
        The text, without a byte order mark and with line feeds as line ends.

    Raises:
        SourceError: The bytes are not UTF-8; the message says what they look like.
    """
    for mark, name in _OTHER_BOMS:
        if data.startswith(mark):
            raise _encoding_error(f"the file is {name}, not UTF-8 (byte order mark)", 1, 1, name)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _undecodable(data, error.start) from None
    if "\0" in text:
        raise _undecodable(data, data.index(b"\0"))
    if text[:1] == "\ufeff":
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r" in text else text


def _read_bytes(path: Path | str, limit: int) -> tuple[bytes, os.stat_result]:
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        raise SourceError("no such file or directory", "missing") from None
    except PermissionError:
        raise SourceError("no permission to read it", "unreadable") from None
    except (OSError, ValueError) as error:
        raise SourceError(_reason(error), "unreadable") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            what = "a directory" if stat.S_ISDIR(facts.st_mode) else "a pipe, socket or device"
            raise SourceError(f"it is {what}, not a file", "not-a-file")
        if facts.st_size <= limit:
            # One byte more than the size, so that a file that grew in between is noticed.
            data = os.read(descriptor, facts.st_size + 1)
            while facts.st_size < len(data) <= limit and (more := os.read(descriptor, 65536)):
                data += more
            if len(data) <= limit:
                return data, facts
        raise SourceError(
            f"it is larger than {limit // 1024:,} KiB",
            "too-large",
            hint="keep long texts in separate files",
        )
    except OSError as error:
        raise SourceError(_reason(error), "unreadable") from None
    finally:
        os.close(descriptor)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def _undecodable(data: bytes, offset: int) -> SourceError:
    line = data.count(b"\n", 0, offset) + 1
    start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[start:offset].removeprefix(_UTF8_BOM).decode(errors="replace")) + 1
    looks = _looks_like(data, offset)
    message = (
        f"the file is not UTF-8 text: byte 0x{data[offset]:02X} at offset {offset}, line {line};"
        f" it looks like {looks}"
    )
    text = None
    if looks in {"Latin-1", "Windows-1252"}:
        end = data.find(b"\n", offset)
        whole = data[start : len(data) if end < 0 else end].removesuffix(b"\r")
        text = whole.decode("cp1252", errors="replace")
    return _encoding_error(message, line, column, looks, text)


def _looks_like(data: bytes, offset: int) -> str:
    sample = data[:4096]
    nuls = sample.count(0)
    if nuls:
        even = sample[::2].count(0)
        if nuls * 3 >= len(sample) and even in {0, nuls}:
            return "UTF-16 without a byte order mark"
        return "a binary file"
    if data[offset] >= 0xC0 and offset + 1 == len(data):
        return "UTF-8 cut off in the middle of a character"
    controls = sum(byte < 32 and byte not in b"\t\n\r\f" for byte in sample)
    if controls * 10 > len(sample):
        return "a binary file"
    return "Windows-1252" if any(0x80 <= byte < 0xA0 for byte in sample) else "Latin-1"


def _encoding_error(
    message: str, line: int, column: int, looks: str, text: str | None = None
) -> SourceError:
    hint = "save the file as UTF-8"
    name = "ISO-8859-1" if looks == "Latin-1" else looks.split(maxsplit=1)[0]
    if name.startswith(("UTF-16", "UTF-32", "ISO", "Windows")):
        hint += f", for example with `iconv -f {name.upper()} -t UTF-8`"
    return SourceError(message, "encoding", hint=hint, span=Span.at(line, column), line=text)
