"""The catalog: several providers as one sorted list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.limits import DEFAULT_LIMITS
from fast_agent.resources.problem import NotFound
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.resources.limits import Limits
    from fast_agent.resources.provider import Document, Provider
    from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate


class Listing:
    """The catalog's lists at one revision, sorted; never changed."""

    __slots__ = ("resources", "revision", "template_keys", "templates", "uris")

    def __init__(self, providers: Sequence[Provider], revision: tuple[int, ...]) -> None:
        self.revision = revision
        by_uri = {one.uri.text: one for provider in providers for one in provider.resources()}
        self.uris: tuple[str, ...] = tuple(sorted(by_uri))
        self.resources: tuple[Resource, ...] = tuple(map(by_uri.__getitem__, self.uris))
        by_template = {one.template: one for prov in providers for one in prov.templates()}
        self.template_keys: tuple[str, ...] = tuple(sorted(by_template))
        self.templates: tuple[ResourceTemplate, ...] = tuple(
            map(by_template.__getitem__, self.template_keys)
        )


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
        if len(self._by_scheme) < len(self.providers):
            raise ValueError("two providers of one scheme")

    @property
    def schemes(self) -> Mapping[str, Provider]:
        """The providers by scheme."""
        return self._by_scheme

    def listing(self) -> Listing:
        """The lists as they are now; the same object until a provider's revision changes."""
        revision = tuple([provider.revision for provider in self.providers])
        listing = self._listing
        if listing is None or listing.revision != revision:
            listing = self._listing = Listing(self.providers, revision)
        return listing

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
            ResourceError: `InvalidUri`, `NotFound`, `Ambiguous`, `TooLarge` or `Unavailable`.
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
        # Not from the listing: making it may take reading every document.
        if provider is None or all(one.template != template for one in provider.templates()):
            known = sorted(one.template for prov in self.providers for one in prov.templates())
            raise NotFound(template, known, what="template")
        return tuple(provider.complete(template, argument, value, given))

    def documents(self) -> Iterator[Document]:
        """Every text that search should find."""
        for provider in self.providers:
            yield from provider.documents()
