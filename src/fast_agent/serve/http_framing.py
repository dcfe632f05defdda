"""Where the parts of an HTTP/1.1 request end in the bytes of a connection.

Requests may follow each other without a pause. A server that answers one at a time must stop at
the end of each, so it has to know that end before it parses what follows.
"""

from __future__ import annotations

from typing import Final

_END: Final = b"\r\n\r\n"
_CRLF: Final = b"\r\n"
_MAX_SIZE_LINE: Final = 256
"""Maximum bytes of a line that starts a chunk, with its extensions."""
_MAX_SIZE_DIGITS: Final = 8
_MAX_FRAMING: Final = 1 << 16
"""Maximum bytes of size lines beyond those of the content: chunks of a byte cost time to read."""
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class FramingError(Exception):
    """The bytes are not the body that the head announced."""


class HeadEnd:
    """Finds the end of a head, which may arrive in any pieces.

    Attributes:
        complete: Whether the end has been seen.
    """

    __slots__ = ("_tail", "complete")

    def __init__(self) -> None:
        self._tail = b""
        self.complete = False

    def take(self, data: bytes) -> int:
        """Return how many bytes at the start of `data` belong to the head."""
        seen = self._tail + data if self._tail else data
        end = seen.find(_END)
        if end < 0:
            self._tail = seen[-len(_END) + 1 :]
            return len(data)
        self.complete = True
        return end + len(_END) - len(self._tail)


class SizedBody:
    """A body whose length the head announced.

    Args:
        length: Number of bytes.

    Attributes:
        left: Number of bytes that are to come.
        data: The bytes so far.
    """

    __slots__ = ("_kept", "data", "left")

    def __init__(self, length: int) -> None:
        self.left = length
        self.data = bytearray()
        self._kept = True

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return len(self.data)

    @property
    def complete(self) -> bool:
        """Whether the whole body has arrived."""
        return not self.left

    def drop(self) -> None:
        """Keep nothing of it."""
        self._kept = False
        self.data = bytearray()

    def take(self, data: bytes) -> int:
        """Return how many bytes at the start of `data` belong to the body, and keep them."""
        count = min(self.left, len(data))
        self.left -= count
        if self._kept:
            self.data += data[:count]
        return count


class ChunkedBody:
    """A body in chunks. Trailers are dropped: nothing after a head may look like a part of it.

    Args:
        max_trailers: Maximum bytes of trailers.

    Attributes:
        data: The bytes so far, without the framing.
        complete: Whether the whole body has arrived, with its trailers.
    """

    __slots__ = (
        "_framing",
        "_in_trailers",
        "_kept",
        "_left",
        "_line",
        "_trailers",
        "complete",
        "data",
    )

    def __init__(self, max_trailers: int) -> None:
        self.data = bytearray()
        self.complete = False
        self._kept = True
        self._line = b""
        self._left = 0
        """Bytes of the current chunk that are to come, with the line end behind it."""
        self._in_trailers = False
        self._trailers = max_trailers
        self._framing = _MAX_FRAMING

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return len(self.data)

    def drop(self) -> None:
        """Keep nothing of it."""
        self._kept = False
        self.data = bytearray()

    def take(self, data: bytes) -> int:
        """Return how many bytes at the start of `data` belong to the body, and keep its content.

        Raises:
            FramingError: They are not chunks.
        """
        at = 0
        while at < len(data) and not self.complete:
            at += self._take_chunk(data, at) if self._left else self._take_line(data, at)
        return at

    def _take_chunk(self, data: bytes, at: int) -> int:
        content = self._left - len(_CRLF)
        if content > 0:
            piece = data[at : at + content]
            if self._kept:
                self.data += piece
            self._left -= len(piece)
            self._framing += len(piece)
            return len(piece)
        if data[at] != _CRLF[-self._left]:
            raise FramingError("a chunk is longer than it says")
        self._left -= 1
        return 1

    def _take_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        piece = data[at:] if end < 0 else data[at : end + 1]
        self._line += piece
        if self._in_trailers:
            self._trailers -= len(piece)
        else:
            self._framing -= len(piece)
            if len(self._line) > _MAX_SIZE_LINE:
                raise FramingError("a chunk has a line that is too long")
        if min(self._trailers, self._framing) < 0:
            raise FramingError("the body has more framing than content")
        if end >= 0:
            line, self._line = self._line, b""
            if not line.endswith(_CRLF):
                raise FramingError("a line of the chunked body does not end with CRLF")
            self._end_line(line[: -len(_CRLF)])
        return len(piece)

    def _end_line(self, line: bytes) -> None:
        if self._in_trailers:
            self.complete = not line
            return
        digits = line.partition(b";")[0]
        if not 0 < len(digits) <= _MAX_SIZE_DIGITS or not _HEX.issuperset(digits):
            raise FramingError("a chunk has an invalid size")
        size = int(digits, 16)
        if size:
            self._left = size + len(_CRLF)
        else:
            self._in_trailers = True
