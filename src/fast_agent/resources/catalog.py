"""The catalog: several providers as one sorted list of resources, read in pages.

A cursor contains the last key of its page: the next page starts after it, wherever that is then.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64, crc32
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.problem import NotFound, bad_params
from fast_agent.resources.resource import DEFAULT_LIMITS
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.resources.provider import Document, Provider
    from fast_agent.resources.resource import Limits, Resource, ResourceContent, ResourceTemplate
    from fast_agent.text.json_value import JsonValue


class Listing:
    """The resources at one revision, sorted by URI; which there are never changes.

    Args:
        providers: Where they come from.
        revision: The revision of each.
    """

    __slots__ = ("_by_scheme", "revision", "uris")

    def __init__(self, providers: Sequence[Provider], revision: tuple[int, ...]) -> None:
        self.revision = revision
        self._by_scheme = {one.scheme: one.resources() for one in providers}
        self.uris: tuple[str, ...] = tuple(
            sorted([uri for resources in self._by_scheme.values() for uri in resources])
        )

    def entries(self, uris: Iterable[str]) -> list[Resource]:
        """Return the entries of some of the URIs; looking one up may read a file."""
        by_scheme = self._by_scheme
        return [by_scheme[uri[: uri.index("://")]][uri] for uri in uris]


class Catalog:
    """Providers by scheme, read and listed as one.

    Args:
        providers: One for each scheme.
        limits: What providers and edges keep to.

    Raises:
        ValueError: Two providers have the same scheme.
    """

    def __init__(self, providers: Iterable[Provider], limits: Limits = DEFAULT_LIMITS) -> None:
        self.providers: tuple[Provider, ...] = tuple(providers)
        self.limits = limits
        self._by_scheme = {provider.scheme: provider for provider in self.providers}
        self._listing: Listing | None = None
        self._templates: tuple[ResourceTemplate, ...] = ()
        if len(self._by_scheme) < len(self.providers):
            raise ValueError("two providers of one scheme")

    @property
    def schemes(self) -> Mapping[str, Provider]:
        """The providers by scheme."""
        return self._by_scheme

    def listing(self) -> Listing:
        """The current resources; the same object until a provider's revision changes."""
        revision = tuple([provider.revision for provider in self.providers])
        listing = self._listing
        if listing is None or listing.revision != revision:
            listing = self._listing = Listing(self.providers, revision)
        return listing

    def templates(self) -> tuple[ResourceTemplate, ...]:
        """The templates, sorted; the same object until one changes. No resource is read."""
        found = {one.template: one for prov in self.providers for one in prov.templates()}
        templates = tuple(map(found.__getitem__, sorted(found)))
        if templates != self._templates:
            self._templates = templates
        return self._templates

    def provider_of(self, uri: Uri) -> Provider:
        """The provider of a URI's scheme.

        Raises:
            NotFound: There is none.
        """
        provider = self._by_scheme.get(uri.scheme)
        if provider is None:
            raise NotFound(uri.text, tuple(f"{scheme}://" for scheme in sorted(self._by_scheme)))
        return provider

    def read(self, uri: Uri | str) -> Sequence[ResourceContent]:
        """Read a resource.

        Args:
            uri: A URI, or text to parse as one.

        Returns:
            One content or more.

        Raises:
            ResourceError: `InvalidUri`, `NotFound`, `AmbiguousName`, `TooLarge` or
                `UnavailableResource`.
        """
        if isinstance(uri, str):
            uri = Uri.parse(uri)
        return self.provider_of(uri).read(uri)

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Sequence[str]:
        """Complete an argument of a listed template; see `Provider.complete`.

        Raises:
            NotFound: No provider lists this template, or it has no such argument.
        """
        provider = self._by_scheme.get(template.partition("://")[0])
        if provider is None or all(one.template != template for one in provider.templates()):
            known = [one.template for one in self.templates()]
            raise NotFound(template, known, what="template")
        return tuple(provider.complete(template, argument, value, given))

    def documents(self) -> Iterator[Document]:
        """Every text that search should find."""
        for provider in self.providers:
            yield from provider.documents()


_MAX_CURSOR_CHARACTERS = 8192
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")


class Page(NamedTuple):
    """A slice of a list, and the cursor of the next one (None on the last)."""

    start: int
    end: int
    cursor: str | None


def page(kind: str, keys: Sequence[str], cursor: JsonValue, size: int) -> Page:
    """Find the page a request asks for.

    Args:
        kind: What is listed, such as `resources/list`; a cursor of another kind is refused.
        keys: Each entry's key, sorted and unique.
        cursor: The request's `cursor`; None for the first page.
        size: Most entries of a page.

    Raises:
        RequestRefused: The cursor is none that this function gave for this kind.
    """
    start = 0 if cursor is None else bisect_right(keys, _last_key(kind, cursor))
    end = min(start + size, len(keys))
    return Page(start, end, _cursor(kind, keys[end - 1]) if end < len(keys) else None)


def _cursor(kind: str, key: str) -> str:
    raw = key.encode()
    sealed = crc32(raw, crc32(kind.encode())).to_bytes(4, "big") + raw
    return b2a_base64(sealed, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def _last_key(kind: str, cursor: JsonValue) -> str:
    if isinstance(cursor, str) and len(cursor) <= _MAX_CURSOR_CHARACTERS and cursor.isascii():
        text = cursor.encode().translate(_STANDARD)
        try:
            sealed = a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
            key = sealed[4:].decode()
        except (Error, UnicodeDecodeError):
            key = ""
        if key and _cursor(kind, key) == cursor:
            return key
    raise bad_params("`cursor` was not issued by this server for this list; ask without one")
