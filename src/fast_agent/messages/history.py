"""History: an immutable sequence of messages whose versions share what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from fast_agent.messages.message import Message


class History(Sequence[Message]):
    """An append-only sequence. `append` returns a new history in constant time and leaves this one as it was.

    Versions of one line share a single list; a version that is not the newest copies its part of it
    when it is appended to, so that a fork never sees what the other line adds.
    """

    __slots__ = ("_length", "_log")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._log: list[Message] = list(messages)
        self._length = len(self._log)

    @classmethod
    def _view(cls, log: list[Message], length: int) -> History:
        view = cls.__new__(cls)
        view._log = log
        view._length = length
        return view

    def append(self, message: Message) -> History:
        """Return this history with `message` after it."""
        log = self._own_log()
        log.append(message)
        return self._view(log, self._length + 1)

    def extend(self, messages: Iterable[Message]) -> History:
        """Return this history with `messages` after it, in order."""
        added = list(messages)
        if not added:
            return self
        log = self._own_log()
        log.extend(added)
        return self._view(log, self._length + len(added))

    def prefix(self, length: int) -> History:
        """Return the first `length` messages, in constant time."""
        return self._view(self._log, max(0, min(length, self._length)))

    def _own_log(self) -> list[Message]:
        log = self._log
        return log if len(log) == self._length else log[: self._length]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(iter(self._log), self._length)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return tuple(self._log[start:stop:step])
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            msg = "history index out of range"
            raise IndexError(msg)
        return self._log[position]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self._length == other._length and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"History({list(self)!r})"
