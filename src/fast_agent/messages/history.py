"""History: an immutable sequence of messages whose versions share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, overload

from fast_agent.messages.long_results import size_of
from fast_agent.messages.message import NOTHING, Message
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


_BITS = 7
_CHUNK = 1 << _BITS
_MASK = _CHUNK - 1


class _Log:
    """The messages of one line, in chunks; all chunks but the last are full and never change."""

    __slots__ = ("chunks", "length", "longest")

    def __init__(self, chunks: list[list[Message]], length: int, longest: int) -> None:
        self.chunks = chunks
        self.length = length
        self.longest = longest

    def add(self, message: Message) -> None:
        if message.tool_results:
            self.longest = max(self.longest, *map(size_of, message.tool_results))
        chunks = self.chunks
        if self.length & _MASK:
            chunks[-1].append(message)
        else:
            chunks.append([message])
        self.length += 1

    def fork(self, length: int) -> _Log:
        """Make a log of the first `length` messages that shares the full chunks of this one."""
        full, rest = length >> _BITS, length & _MASK
        chunks = self.chunks[:full]
        if rest:
            chunks.append(self.chunks[full][:rest])
        return _Log(chunks, length, self.longest)


class History(Sequence[Message]):
    """An append-only sequence: `append` returns a new history and leaves this one as it was.

    Versions of one line share a single log. A version that is not the newest of its line forks the
    log when it is appended to, so that neither line ever sees what the other adds; a fork copies
    one chunk and the list of chunks, not the messages. Appending costs the same at any length.

    Meant for one event loop: an append never awaits, so tasks may append to versions of one line in
    any order. It is not for use from several threads at once.
    """

    __slots__ = ("_length", "_log")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        there = list(messages)
        chunks = [there[at : at + _CHUNK] for at in range(0, len(there), _CHUNK)]
        longest = max(
            (size_of(one) for message in there for one in message.tool_results), default=0
        )
        self._log = _Log(chunks, len(there), longest)
        self._length = len(there)

    @classmethod
    def _view(cls, log: _Log, length: int) -> History:
        view = cls.__new__(cls)
        view._log = log  # noqa: SLF001
        view._length = length  # noqa: SLF001
        return view

    @property
    def longest_result(self) -> int:
        """The size of the longest tool result in it or in a later version, as `size_of` counts."""
        return self._log.longest

    def append(self, message: Message) -> History:
        """Return this history with `message` after it."""
        log = self._own_log()
        log.add(message)
        return self._view(log, log.length)

    def extend(self, messages: Iterable[Message]) -> History:
        """Return this history with `messages` after it, in order."""
        added = list(messages)  # read in full first: it may be a view of this very log
        if not added:
            return self
        log = self._own_log()
        for message in added:
            log.add(message)
        return self._view(log, log.length)

    def prefix(self, length: int) -> History:
        """Return the first `length` messages, in constant time; all of them when it is longer."""
        return self._view(self._log, max(0, min(length, self._length)))

    def iterate(self, start: int = 0) -> Iterator[Message]:
        """Iterate from index `start` on, without copying and without walking what is before it.

        Args:
            start: The first index, from 0.

        Returns:
            An iterator that ends where this history ends, even if more is appended while it runs.
        """
        start = max(0, start)
        if start >= self._length:
            return iter(())
        chunks = self._log.chunks
        first = start >> _BITS
        last = (self._length - 1) >> _BITS
        offset = start & _MASK
        count = self._length - start
        if first == last:
            return islice(chunks[first], offset, offset + count)
        rest = chain.from_iterable(chunks[first + 1 : last + 1])
        return islice(chain(islice(chunks[first], offset, None), rest), count)

    def _own_log(self) -> _Log:
        log = self._log
        return log if log.length == self._length else log.fork(self._length)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return self.iterate()

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step == 1:
                return tuple(islice(self.iterate(start), max(0, stop - start)))
            return tuple(self[position] for position in range(start, stop, step))
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError("history index out of range")
        return self._log.chunks[position >> _BITS][position & _MASK]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        if self._length != other._length:
            return False
        return self._log is other._log or list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"History({list(self)!r})"


@frozen
class HistoryDocument:
    """A conversation as a file holds it.

    Args:
        system: The system prompt in the file, or None.
        messages: The messages, in order.
        extra: Unknown fields of the document, kept.
    """

    system: str | None = None
    messages: tuple[Message, ...] = ()
    extra: JsonObject = NOTHING
