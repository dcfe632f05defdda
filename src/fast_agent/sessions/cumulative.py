"""Cumulative transcript: every message of every agent of one session, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.messages.history import LOST, CallIds, History, append_to_view, close_open_calls
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fast_agent.messages.message import Message


@frozen
class Entry:
    """One turn of one agent.

    Args:
        agent: Whose turn it was.
        turn_id: The turn.
        parent_call_id: The tool call of another agent it answered, or the turn of the workflow it
            was a part of; None at the top.
        messages: Every message of the turn, in order.
    """

    agent: str
    turn_id: str
    parent_call_id: str | None
    messages: tuple[Message, ...]


class CumulativeTranscript:
    """An append-only log of turns, in the order in which they were added.

    It also serves to hold back the turns of a child until its place in the order is known: they
    gathered in a separate transcript, whose entries then go into the other as one block.

    Args:
        past: Gives what it starts with, asked when that is first needed; None is nothing.
        on_block: Called with the entries of a block before they are added, or None.
    """

    __slots__ = ("_entries", "_ids", "_on_block", "_past", "_view", "_viewed")

    def __init__(
        self,
        past: Callable[[], Iterable[Entry]] | None = None,
        *,
        on_block: Callable[[tuple[Entry, ...]], None] | None = None,
    ) -> None:
        self._on_block = on_block
        self.restart(past)

    def restart(self, past: Callable[[], Iterable[Entry]] | None) -> None:
        """Forget everything and start with `past`, as when a session is rewound."""
        self._past = past
        self._entries: list[Entry] = []
        self._view = History()
        self._viewed = 0
        self._ids = CallIds()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every turn so far."""
        return tuple(self._all_entries())

    def __len__(self) -> int:
        return len(self._all_entries())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._all_entries())

    def append(self, entry: Entry) -> None:
        """Add a turn that ended."""
        self._entries.append(entry)

    def block(self, entries: Iterable[Entry]) -> None:
        """Add turns that were held back, with nothing between them.

        Raises:
            SessionError: They could not be written; then none is added.
        """
        added = tuple(entries)
        if added:
            if self._on_block is not None:
                self._on_block(added)
            self._entries.extend(added)

    @property
    def call_ids(self) -> CallIds:
        """The ids of the calls in `messages`."""
        return self._ids

    def messages(self) -> History:
        """Return everything said, in a form every provider accepts.

        Messages that would not follow each other are joined, and a tool call whose id was used by
        another turn before gets a new one, with its result. Only what was added since the last
        time is worked on; the rest is shared.
        """
        entries = self._all_entries()
        for entry in entries[self._viewed :]:
            for message in self._ids.own_block(entry.messages):
                self._view = append_to_view(self._view, message)
        self._viewed = len(entries)
        return close_open_calls(self._view, LOST)

    def _all_entries(self) -> list[Entry]:
        if self._past is not None:
            self._entries[:0] = self._past()
            self._past = None
        return self._entries
