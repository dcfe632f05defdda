"""Output kept within bounds: its beginning and its end, and how much was left out between them."""

from __future__ import annotations


class BoundedOutput:
    """Takes any number of bytes and holds no more than twice `head` and `tail` together.

    Args:
        head: Bytes kept from the beginning.
        tail: Bytes kept from the end.
    """

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "_total")

    def __init__(self, head: int, tail: int) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes that were added."""
        return self._total

    @property
    def omitted(self) -> int:
        """Bytes that `text` leaves out."""
        return max(0, self._total - len(self._head) - self._tail_limit)

    def add(self, data: bytes) -> None:
        """Add what came."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room else data
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: len(self._tail) - self._tail_limit]

    def text(self) -> str:
        """Give the text: whole, or its ends with a note between them.

        Returns:
            UTF-8 text; wrong bytes and NUL characters are shown as U+FFFD. A character cut in two
            by the note is left out.
        """
        if not self.omitted:
            return _decode(bytes(self._head + self._tail))
        head = bytes(self._head)
        tail = bytes(self._tail[len(self._tail) - self._tail_limit :])
        unit = "byte" if self.omitted == 1 else "bytes"
        note = f"\n[… {self.omitted:,} {unit} left out …]\n"
        return _decode(_without_cut_end(head)) + note + _decode(_without_cut_start(tail))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def _without_cut_end(data: bytes) -> bytes:
    """Drop the first bytes of a character whose last ones are missing."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            break
    return data


def _without_cut_start(data: bytes) -> bytes:
    """Drop the last bytes of a character whose first ones are missing."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
