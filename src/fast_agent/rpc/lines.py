"""Messages as lines of bounded length, and standard input and output as a place for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from fast_agent.rpc.message import INVALID_REQUEST, InvalidMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE_BYTES: Final = 4 << 20
"""Maximum size of a message; an edge whose messages carry pictures allows more."""

_BLANKS: Final = b" \t\r\n"
"""What JSON takes for white space."""

CHUNK_BYTES: Final = 1 << 16
"""How much is read at once."""


class Lines:
    """Splits chunks of bytes into lines of bounded length.

    Args:
        max_bytes: Maximum size of a line.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a chunk ends, without blank ones; None for one that is too long."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[bytes | None]:
        """Yield what was fed since the last line end, unless that is blank."""
        parts, size = self._parts, self._size
        self._parts, self._size = [], 0
        if size > self.max_bytes:
            yield None
        elif line := (parts[0] if len(parts) == 1 else b"".join(parts)).strip(_BLANKS):
            yield line

    @property
    def begun(self) -> bytes:
        """The bytes that were fed since the last line end."""
        return b"".join(self._parts)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.max_bytes:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)


def too_long(max_bytes: int) -> InvalidMessageError:
    """Return the error that answers a line which is too long."""
    return InvalidMessageError(INVALID_REQUEST, f"a message is longer than {max_bytes:,} bytes")


def take_stdio() -> tuple[int, int]:
    """Take standard input and output for messages alone.

    From now on, what anything else prints goes to standard error, and what it reads is empty.

    Returns:
        Descriptors to read messages from and to write them to.
    """
    own_input, own_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return own_input, own_output
