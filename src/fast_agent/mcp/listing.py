"""A list a server returns page by page, kept until it changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Generic, TypeAlias, TypeVar

import anyio

from fast_agent.errors import ToolError
from fast_agent.text.frozen import frozen

PAGE_LIMIT = 250
ITEM_LIMIT = 10_000
"""Most entries of one list; what comes after them is left out with a warning."""

MIN_SECONDS = 1.0
"""How long a list is kept at least, whatever the server says of its freshness."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


@frozen
class Page(Generic[T]):
    """One page.

    Args:
        items: What it lists.
        cursor: Where the next page starts, or None on the last.
        fresh_seconds: How long it stays fresh; infinite if changes are notified.
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
        seconds: Longest wait for all pages together.
    """

    def __init__(
        self, what: str, fetch: Fetch[T], clock: Callable[[], float], *, seconds: float = inf
    ) -> None:
        self._what = what
        self._seconds = seconds
        self._fetch = fetch
        self._clock = clock
        self._lock = anyio.Lock()
        self._items: tuple[T, ...] | None = None
        self._fresh_until = -inf
        self._changes = 0
        self._is_cut = False

    def changed(self) -> None:
        """Fetch it again at the next use."""
        self._changes += 1
        self._fresh_until = -inf

    async def items(self) -> tuple[T, ...]:
        """Return the list; the same tuple while nothing changed.

        Raises:
            ToolError: The server cannot be reached, or its pages do not end.
        """
        if self._items is not None and self._clock() < self._fresh_until:
            return self._items
        async with self._lock:
            if self._items is not None and self._clock() < self._fresh_until:
                return self._items
            changes = self._changes
            items, fresh_seconds = await self._in_time()
            if items != self._items:
                self._items = items
            # A change notified while the pages came in makes them outdated already.
            if changes == self._changes:
                self._fresh_until = self._clock() + max(fresh_seconds, MIN_SECONDS)
            return self._items or ()

    async def _in_time(self) -> tuple[tuple[T, ...], float]:
        with anyio.move_on_after(self._seconds):
            return await self._all()
        raise ToolError(f"{self._what}: its pages did not end within {self._seconds:g} s")

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
            if len(items) > ITEM_LIMIT:
                self._warn_of_cut()
                return tuple(items[:ITEM_LIMIT]), fresh_seconds
            if cursor is None:
                return tuple(items), fresh_seconds
            if cursor in seen:
                raise ToolError(f"{self._what}: the pages do not end, a cursor came again")
            seen.add(cursor)
        raise ToolError(f"{self._what}: over {PAGE_LIMIT} pages")

    def _warn_of_cut(self) -> None:
        if not self._is_cut:
            self._is_cut = True
            _log.warning(
                "%s has over %s entries; the first ones are used", self._what, f"{ITEM_LIMIT:,}"
            )
