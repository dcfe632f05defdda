"""Endpoint: where a model of a provider is reached."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.config.settings import ServiceTier

_MIN_SECRET: Final = 8
"""Fewest characters of a header that may be a secret."""


@frozen(kw_only=True)
class Endpoint:
    """Where a model is reached.

    Args:
        provider: A name of `PROVIDERS`.
        name: Prefix of specs: `provider`, or the name of an endpoint of the configuration.
        model: The model's name at the provider.
        api_key: The key; None where the provider needs none. Never shown.
        base_url: The address; None for the provider's own.
        headers: HTTP headers sent with each request. Never shown.
        service_tier: How requests are served and billed; None leaves it to the provider.
        large_context: Ask for the window of a million tokens, a beta of Anthropic.
    """

    provider: str
    name: str = ""
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    service_tier: ServiceTier | None = None
    large_context: bool = False

    @property
    def spec(self) -> str:
        """The model as a spec names it, without an effort."""
        return f"{self.name or self.provider}.{self.model}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key and the values of the headers, which must not appear anywhere."""
        long = (text for text in self.headers.values() if len(text) >= _MIN_SECRET)
        return (*((self.api_key,) if self.api_key else ()), *long)
