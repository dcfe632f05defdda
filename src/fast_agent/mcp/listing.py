"""A list a server gives page by page, kept until it changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeAlias, TypeVar

import anyio

from fast_agent.errors import ToolError

PAGE_LIMIT = 250
ITEM_LIMIT = 10_000
LEAST_SECONDS = 1.0
"""How long a list is kept at least, whatever the server says of its freshness."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page.

    Args:
        items: What it lists.
        cursor: Where the next page starts, or None on the last.
        fresh_seconds: How long it stays fresh; infinite where changes are told.
    """

    items: Sequence[T]
    cursor: str | None
    fresh_seconds: float = inf


Fetch: TypeAlias = Callable[[str | None], Awaitable[Page[T]]]


class Listing(Generic[T]):
    """A whole list, fetched when it is first needed and after each change.

    Args:
        what: The server and what it lists, for messages.
        fetch: Fetches the page at a cursor.
        clock: Seconds that never go back.
    """

    def __init__(self, what: str, fetch: Fetch[T], clock: Callable[[], float]) -> None:
        self._what = what
        self._fetch = fetch
        self._clock = clock
        self._lock = anyio.Lock()
        self._items: tuple[T, ...] | None = None
        self._fresh_until = -inf
        self._changes = 0

    def changed(self) -> None:
        """Fetch it anew at the next need."""
        self._changes += 1
        self._fresh_until = -inf

    async def items(self) -> tuple[T, ...]:
        """Give the list; the same tuple again while nothing changed.

        Raises:
            ToolError: The server cannot be reached, or its pages do not end.
        """
        if self._items is not None and self._clock() < self._fresh_until:
            return self._items
        async with self._lock:
            if self._items is not None and self._clock() < self._fresh_until:
                return self._items
            changes = self._changes
            items, fresh_seconds = await self._all()
            if items != self._items:
                self._items = items
            # A change told while the pages came in makes them old already.
            if changes == self._changes:
                self._fresh_until = self._clock() + max(fresh_seconds, LEAST_SECONDS)
            return self._items or ()

    async def _all(self) -> tuple[tuple[T, ...], float]:
        items: list[T] = []
        seen: set[str] = set()
        cursor: str | None = None
        fresh_seconds = inf
        for _ in range(PAGE_LIMIT):
            page = await self._fetch(cursor)
            items.extend(page.items)
            fresh_seconds = min(fresh_seconds, page.fresh_seconds)
            cursor = page.cursor
            if cursor is None:
                return tuple(items), fresh_seconds
            if cursor in seen:
                raise ToolError(f"{self._what}: the pages do not end, a cursor came again")
            if len(items) > ITEM_LIMIT:
                raise ToolError(f"{self._what}: over {ITEM_LIMIT:,} entries")
            seen.add(cursor)
        raise ToolError(f"{self._what}: over {PAGE_LIMIT} pages")
