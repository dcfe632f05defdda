"""Pages of the web, fetched within bounds: for `{{url:}}`, the tool `fetch`, and remote cards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.cards.card import FetchedText
from fast_agent.errors import CardError, ConfigError, ResourceError
from fast_agent.text.web_failure import system_reason, through_proxy, web_hint
from fast_agent.trust.address import shown_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Judge = Callable[[str], None]

_REDIRECTS = 5


class Page(NamedTuple):
    """A page of the web.

    Args:
        text: What it holds.
        media_type: What the server says it is, without parameters, in lower case; may be empty.
        url: Where it was, after redirects.
    """

    text: str
    media_type: str
    url: str


async def fetch_page(
    url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
) -> Page:
    """Fetch a page over HTTP, following a few redirects.

    Args:
        url: An `http` or `https` URL.
        max_bytes: Most bytes the answer may hold.
        timeout: Most seconds the whole fetch may take.
        check: Called before each connection, redirects included; None allows all.

    Returns:
        The page, its text in the charset the server names, else UTF-8.

    Raises:
        ResourceError: The page cannot be had, is too large, too slow or not text.
    """
    import httpx2
    from anyio import fail_after

    from fast_agent.models.http_client import client_options

    shown = _shown(url)
    guard: httpx2.AsyncBaseTransport | None = None
    if check is not None:
        from fast_agent.mcp.guarded_http import GuardedTransport

        guard = GuardedTransport(check)
    try:
        with fail_after(timeout):
            async with (
                httpx2.AsyncClient(
                    **client_options(),
                    follow_redirects=True,
                    max_redirects=_REDIRECTS,
                    timeout=timeout,
                    transport=guard,
                    trust_env=guard is None,
                ) as client,
                client.stream("GET", url) as response,
            ):
                if not response.is_success:
                    raise ResourceError(f"`{shown}` answered with status {response.status_code}")
                data = bytearray()
                async for block in response.aiter_bytes():
                    data += block
                    if len(data) > max_bytes:
                        raise ResourceError(f"`{shown}` holds more than {max_bytes} bytes")
                text = _decoded(bytes(data), response.charset_encoding or "utf-8", shown)
                kind = response.headers.get("content-type", "").partition(";")[0]
                final = str(response.url) if response.history else url
                return Page(text, kind.strip().lower(), final)
    except TimeoutError as error:
        raise ResourceError(f"`{shown}` did not answer within {timeout:g} seconds") from error
    except ConfigError as error:  # of its certificates
        raise ResourceError(error.message, hint=error.hint) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:  # ValueError: of its proxy
        reason = system_reason(error) or str(error) or type(error).__name__
        raise ResourceError(
            f"`{shown}` cannot be fetched{through_proxy(url)}: {reason}",
            hint=web_hint(reason, url, "check the address and the network"),
        ) from error


def _decoded(data: bytes, charset: str, shown: str) -> str:
    try:
        text = data.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        raise ResourceError(f"`{shown}` is not text in `{charset}`") from error
    if "\0" in text:
        raise ResourceError(f"`{shown}` is binary, not text")
    return text.removeprefix("\ufeff")


def _shown(url: str) -> str:
    try:
        return shown_address(url)
    except ValueError:  # brackets that are not closed
        return url


CARD_TIMEOUT_SECONDS = 20.0
"""Longest wait for a remote card."""

MAX_CARD_BYTES = 1024 * 1024
"""Largest remote card."""


def fetch_card(address: str, check: Callable[[str], None] | None = None) -> FetchedText:
    """Fetch the text of a card.

    Args:
        address: An `http` or `https` address.
        check: Called before each connection, redirects included; None allows all.

    Returns:
        The text, and the address it came from in the end.

    Raises:
        CardError: It cannot be had, is too large, too slow, or is not text.
    """
    fetch = partial(fetch_page, max_bytes=MAX_CARD_BYTES, timeout=CARD_TIMEOUT_SECONDS, check=check)
    try:
        page = _run(partial(fetch, address))
    except ResourceError as error:
        raise CardError(error.message, hint=error.hint) from error
    return FetchedText(page.url, page.text)


def _run(fetch: Callable[[], Awaitable[Page]]) -> Page:
    """Run a fetch to its end, in a separate thread where this one has a loop."""
    from asyncio import get_running_loop
    from concurrent.futures import ThreadPoolExecutor

    from anyio import run

    try:
        get_running_loop()
    except RuntimeError:
        return run(fetch)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, fetch).result()
