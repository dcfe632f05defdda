from __future__ import annotations

from math import inf

import anyio
import pytest
from tests.patience import pass_seconds

from fast_agent.errors import ToolError
from fast_agent.mcp.listing import ITEM_LIMIT, Listing, Page

pytestmark = pytest.mark.anyio


class Book:
    """Pages that can be counted and changed."""

    def __init__(self, *pages: list[int], fresh_seconds: float = inf) -> None:
        self.pages = pages
        self.fresh_seconds = fresh_seconds
        self.reads = 0
        self.now = 0.0
        self.listing = Listing("book", self.fetch, lambda: self.now)

    async def fetch(self, cursor: str | None) -> Page[int]:
        self.reads += 1
        number = int(cursor or 0)
        await anyio.sleep(0)  # noqa: ASYNC115 - others run meanwhile
        last = number + 1 == len(self.pages)
        return Page(self.pages[number], None if last else str(number + 1), self.fresh_seconds)


async def test_follows_all_pages_and_keeps_the_list() -> None:
    book = Book([1, 2], [], [3])
    assert await book.listing.items() == (1, 2, 3)
    assert await book.listing.items() is await book.listing.items()
    assert book.reads == 3


@pytest.mark.spec("TOOL-10")
async def test_a_change_fetches_it_anew_and_an_equal_list_stays_the_same_value() -> None:
    book = Book([1])
    before = await book.listing.items()
    book.listing.changed()
    assert await book.listing.items() is before
    assert book.reads == 2
    book.pages = ([2],)
    book.listing.changed()
    assert await book.listing.items() == (2,)


async def test_readers_at_once_share_one_fetch() -> None:
    book = Book([1], [2])
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(book.listing.items)
    assert book.reads == 2


async def test_a_change_during_a_fetch_is_not_lost() -> None:
    book = Book([1], [2])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(book.listing.items)
        while book.reads == 0:  # noqa: ASYNC110 - one step of the loop at a time
            await anyio.sleep(0)  # noqa: ASYNC115
        book.pages = ([1], [3])
        book.listing.changed()
    assert book.reads == 2
    assert await book.listing.items() == (1, 3)
    assert book.reads == 4


async def test_a_list_is_kept_as_long_as_the_server_says_and_at_least_a_second() -> None:
    for fresh_seconds, kept in ((0.0, 1.0), (60.0, 60.0)):
        book = Book([1], fresh_seconds=fresh_seconds)
        await book.listing.items()
        book.now = kept - 0.01
        await book.listing.items()
        assert book.reads == 1
        book.now = kept
        await book.listing.items()
        assert book.reads == 2


@pytest.mark.parametrize(
    "pages", [(ITEM_LIMIT + 1,), (ITEM_LIMIT, 1), (4_000, 4_000, 4_000, 4_000), (200_000,)]
)
@pytest.mark.spec("BOUND-2")
async def test_a_list_is_cut_with_a_warning_whatever_its_pages(
    caplog: pytest.LogCaptureFixture, pages: tuple[int, ...]
) -> None:
    book = Book(*[list(range(count)) for count in pages])
    assert len(await book.listing.items()) == ITEM_LIMIT
    book.listing.changed()
    assert len(await book.listing.items()) == ITEM_LIMIT
    assert caplog.messages == ["book has over 10,000 entries; the first ones are used"]


async def test_pages_that_come_slowly_for_ever_are_an_error() -> None:
    now = 0

    async def fetch(cursor: str | None) -> Page[int]:
        pass_seconds(20)
        await anyio.sleep(0)  # noqa: ASYNC115 - where the time that passed is noticed
        return Page([1], f"{cursor}+")

    listing = Listing("drip", fetch, lambda: now, seconds=300)
    with pytest.raises(ToolError, match="drip: its pages did not end within 300 s"):
        await listing.items()
