"""Texts of web pages, fetched once and kept for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from fast_agent.errors import ResourceError
from fast_agent.steps.steps import Step, here, text_by_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio import Lock

    Judge = Callable[[str], None]

_REDIRECTS = 5


class Fetch(Protocol):
    """Gets the text at a URL."""

    async def __call__(
        self, url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
    ) -> str:
        """Fetch a text.

        Args:
            url: An `http` or `https` URL.
            max_bytes: Most bytes the answer may hold.
            timeout: Most seconds the whole fetch may take.
            check: Called before each connection, redirects included; None allows all.

        Raises:
            ResourceError: There is no such page, or it is too large, too slow or no text.
        """
        ...


class UrlTexts:
    """Fetched texts, each kept for `ttl` seconds; several askers of one URL share one fetch.

    Args:
        fetch: Fetches a text.
        monotonic: A clock that only goes forward, in seconds.
        ttl: How long a text is kept, in seconds.
        max_bytes: Maximum size of a text in bytes.
        timeout: Most seconds a fetch may take.
    """

    def __init__(
        self,
        fetch: Fetch,
        monotonic: Callable[[], float],
        *,
        ttl: float = 300.0,
        max_bytes: int = 1024 * 1024,
        timeout: float = 20.0,
    ) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._kept: dict[str, tuple[float, str]] = {}
        self._failed: dict[str, tuple[float, ResourceError]] = {}
        self._locks: dict[str, Lock] = {}

    def kept(self, url: str) -> str | None:
        """Return the text of a recently fetched URL; None when it must be fetched."""
        if not here().silent:
            return None  # every turn's reading is a step
        found = self._kept.get(url)
        return found[1] if found is not None and self._monotonic() < found[0] else None

    async def get(self, url: str, check: Judge | None = None) -> str:
        """Return the text of a URL, as a step of the run it is asked in; see `fetch`."""
        place = here()
        if place.silent:
            return await self.fetch(url, check)

        async def work() -> str:
            return await self.fetch(url, check)

        return await place.steps.ask(Step("read", url), work, text_by_digest(place.steps))

    async def fetch(self, url: str, check: Judge | None = None) -> str:
        """Return the text of a URL, fetching it if it is not cached.

        Args:
            url: An `http` or `https` URL.
            check: Asked before each connection, where the card that names the URL was found.

        Returns:
            The text.

        Raises:
            ResourceError: It cannot be fetched; a text fetched earlier does not replace it.
        """
        from anyio import Lock

        asked = self._monotonic()
        async with self._locks.setdefault(url, Lock()):
            kept = self._kept.get(url)
            if kept is not None and (self._monotonic() < kept[0] or asked < kept[0] - self._ttl):
                return kept[1]  # fresh, or fetched by another caller while this one waited
            failed = self._failed.get(url)
            if failed is not None and asked < failed[0]:
                raise ResourceError(failed[1].message, hint=failed[1].hint)
            try:
                text = await self._fetch(
                    url, max_bytes=self._max_bytes, timeout=self._timeout, check=check
                )
            except ResourceError as error:
                self._failed[url] = (self._monotonic(), error)
                raise
            self._kept[url] = (self._monotonic() + self._ttl, text)
            return text


def is_web_address(url: str) -> bool:
    """Return whether a URL is one that can be fetched."""
    return url.lower().startswith(("http://", "https://"))


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


async def fetch_text(
    url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
) -> str:
    """Fetch a text over HTTP; see `fetch_page`."""
    return (await fetch_page(url, max_bytes=max_bytes, timeout=timeout, check=check)).text


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
        ResourceError: The page cannot be had, is too large, too slow or no text.
    """
    import httpx2
    from anyio import fail_after

    guard: httpx2.AsyncBaseTransport | None = None
    if check is not None:
        from fast_agent.mcp.guarded_http import GuardedTransport

        guard = GuardedTransport(check)
    try:
        with fail_after(timeout):
            async with (
                httpx2.AsyncClient(
                    follow_redirects=True,
                    max_redirects=_REDIRECTS,
                    timeout=timeout,
                    transport=guard,
                    trust_env=guard is None,
                ) as client,
                client.stream("GET", url) as response,
            ):
                if not response.is_success:
                    raise ResourceError(f"`{url}` answered with status {response.status_code}")
                data = bytearray()
                async for block in response.aiter_bytes():
                    data += block
                    if len(data) > max_bytes:
                        raise ResourceError(f"`{url}` holds more than {max_bytes} bytes")
                text = _decoded(bytes(data), response.charset_encoding or "utf-8", url)
                kind = response.headers.get("content-type", "").partition(";")[0]
                return Page(text, kind.strip().lower(), str(response.url))
    except TimeoutError as error:
        raise ResourceError(f"`{url}` did not answer within {timeout:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise ResourceError(f"`{url}` cannot be fetched: {reason}") from error


def _decoded(data: bytes, charset: str, url: str) -> str:
    try:
        text = data.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        raise ResourceError(f"`{url}` is not text in `{charset}`") from error
    if "\0" in text:
        raise ResourceError(f"`{url}` is binary, not text")
    return text.removeprefix("\ufeff")
