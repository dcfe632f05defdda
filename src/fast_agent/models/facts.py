"""Facts of models: how much a context window holds, and what a request costs.

The configuration (`model_facts`) is asked first, then the price list that comes with the provider
library. What neither of them knows is not guessed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fast_agent.config.providers import LARGE_CONTEXT, is_own_host
from fast_agent.config.settings import NO_FACTS, StatedFacts
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from genai_prices.types import ModelInfo

    from fast_agent.config.settings import Settings
    from fast_agent.models.check import Endpoint
    from fast_agent.models.model import Usage
    from fast_agent.models.spec import ModelSpec

_LISTED_AS: Final[Mapping[str, str]] = MappingProxyType({"xai": "x-ai", "bedrock": "aws"})
"""Providers the price list knows by another name."""

_MILLION: Final = 1_000_000
_NANO: Final = 1_000_000_000


@frozen
class ModelFacts:
    """What is known of a model.

    Args:
        stated: What the configuration says.
        listed: Its entry in the price list, or None.
        provider: The provider of that entry, as the list names it.
        has_large_context: The window of a million tokens was asked for.
    """

    stated: StatedFacts = NO_FACTS
    listed: ModelInfo | None = None
    provider: str = ""
    has_large_context: bool = False

    @property
    def window(self) -> int | None:
        """Tokens the context window holds, or None."""
        if self.stated.context_window is not None:
            return self.stated.context_window
        if self.has_large_context:
            return LARGE_CONTEXT
        return None if self.listed is None else self.listed.context_window

    @property
    def is_priced(self) -> bool:
        """Whether the price of a request is known."""
        return self.stated.is_priced or self.listed is not None

    def price(self, usage: Usage) -> int | None:
        """Return the price of a request in billionths of a US dollar, or None."""
        stated = self.stated
        if stated.input_cost is not None and stated.output_cost is not None:
            cached = (
                stated.input_cost if stated.cached_input_cost is None else stated.cached_input_cost
            )
            new = usage.input_tokens - usage.cache_read_tokens
            dollars = (
                new * stated.input_cost
                + usage.cache_read_tokens * cached
                + usage.output_tokens * stated.output_cost
            )
            return round(dollars * _NANO / _MILLION)
        return None if self.listed is None else _listed_price(usage, self.listed.id, self.provider)


UNKNOWN: Final = ModelFacts()
"""A model of which nothing is known."""


def _listed_price(usage: Usage, model: str, provider: str) -> int | None:
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    counts = PricedUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = calc_price(counts, model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return round(found.total_price * _NANO)


def stated_facts(spec: ModelSpec, settings: Settings) -> StatedFacts:
    """Return what the configuration says of a model, by its spec or the text it was read from."""
    facts = settings.model_facts
    return facts.get(spec.given) or facts.get(spec.text) or facts.get(_plain_name(spec)) or NO_FACTS


def _plain_name(spec: ModelSpec) -> str:
    return f"{spec.provider}.{spec.name}"


def known_window(text: str, settings: Settings, environ: Mapping[str, str]) -> int | None:
    """Return how many tokens a model has room for, or None; of several, the first counts.

    Args:
        text: The spec.
        settings: The configuration.
        environ: The environment.

    Raises:
        ModelError: It cannot be taken apart.
    """
    from fast_agent.models.check import endpoint_of
    from fast_agent.models.spec import LOCAL, parse_models

    spec = parse_models(text, settings.model_aliases, settings.endpoints)[0]
    stated = stated_facts(spec, settings)
    if spec.is_cloud and stated.context_window is None:
        return facts_of(endpoint_of(spec, settings, environ), stated).window
    if spec.provider == LOCAL and stated.context_window is None:
        from fast_agent.models.local.engine import DEFAULT_CONTEXT

        return spec.options.context or DEFAULT_CONTEXT
    return stated.context_window


def facts_of(endpoint: Endpoint, stated: StatedFacts = NO_FACTS) -> ModelFacts:
    """Look up a model of a provider; the first time takes a tenth of a second.

    Args:
        endpoint: Where it is reached. At an address that is not the provider's own, another model
            or price may hide behind a name: only what the list has for that address counts then.
        stated: What the configuration says.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return ModelFacts(stated, has_large_context=endpoint.large_context)
    address, provider = endpoint.base_url, _LISTED_AS.get(endpoint.provider, endpoint.provider)
    if address and is_own_host(endpoint.provider, urlsplit(address).hostname or ""):
        address = None
    try:
        owner, listed = get_snapshot().find_provider_model(
            endpoint.model, None, None if address else provider, address
        )
    except LookupError:
        return ModelFacts(stated, has_large_context=endpoint.large_context)
    return ModelFacts(stated, listed, owner.id, endpoint.large_context)
