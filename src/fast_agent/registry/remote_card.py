"""Fetching cards from web addresses, within bounds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fast_agent.cards.card_load import Fetched
from fast_agent.errors import CardError, ResourceError
from fast_agent.mcp.web_page import fetch_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.mcp.web_page import Page

TIMEOUT_SECONDS = 20.0
"""Longest wait for a remote card."""

MAX_BYTES = 1024 * 1024
"""Largest remote card."""


def fetch_card(address: str, check: Callable[[str], None] | None = None) -> Fetched:
    """Fetch the text of a card.

    Args:
        address: An `http` or `https` address.
        check: Called before each connection, redirects included; None allows all.

    Returns:
        The text, and the address it came from in the end.

    Raises:
        CardError: It cannot be had, is too large, too slow, or is not text.
    """
    fetch = partial(fetch_page, max_bytes=MAX_BYTES, timeout=TIMEOUT_SECONDS, check=check)
    try:
        page = _run(partial(fetch, address))
    except ResourceError as error:
        raise CardError(error.message, hint=error.hint) from error
    return Fetched(page.url, page.text)


def _run(fetch: Callable[[], Awaitable[Page]]) -> Page:
    """Run a fetch to its end, in a thread of its own where this one has a loop."""
    from asyncio import get_running_loop
    from concurrent.futures import ThreadPoolExecutor

    from anyio import run

    try:
        get_running_loop()
    except RuntimeError:
        return run(fetch)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, fetch).result()
