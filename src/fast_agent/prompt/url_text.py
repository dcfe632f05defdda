"""Texts of web pages, fetched once and kept for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fast_agent.errors import ResourceError
from fast_agent.steps.steps import Step, here, text_by_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio import Lock

    from fast_agent.mcp.web_page import Judge


class Fetch(Protocol):
    """Gets the text at a URL."""

    async def __call__(
        self, url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
    ) -> str:
        """Fetch text from an address.

        Args:
            url: An `http` or `https` URL.
            max_bytes: Most bytes the answer may hold.
            timeout: Most seconds the whole fetch may take.
            check: Called before each connection, redirects included; None allows all.

        Raises:
            ResourceError: There is no such page, or it is too large, too slow or not text.
        """
        ...


class UrlTexts:
    """Fetched texts, each kept for `ttl` seconds; several askers of one URL share one fetch.

    Args:
        fetch: Fetches text from an address.
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


async def fetch_text(
    url: str, *, max_bytes: int, timeout: float, check: Judge | None = None
) -> str:
    """Fetch text over HTTP; see `fetch_page`."""
    from fast_agent.mcp.web_page import fetch_page

    return (await fetch_page(url, max_bytes=max_bytes, timeout=timeout, check=check)).text
