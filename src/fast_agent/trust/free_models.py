"""Free models: which models a found card may talk to without a question (TR-E1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.config.providers import PROVIDERS, is_own_host
from fast_agent.text.json_value import as_list
from fast_agent.trust.address import address_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.cards.card import Card
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.context import Context, GivenOptions, ParsedModel

_AMAZON = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN")


def has_key(provider: str, given: GivenOptions) -> bool:
    """Return whether the user has a key for a provider, or reaches it at an address of theirs.

    Args:
        provider: A name of `PROVIDERS`.
        given: What the user gave.
    """
    facts = PROVIDERS[provider]
    section = given.settings.provider(provider)
    environ = given.environ
    if section.api_key or any(environ.get(name) for name in facts.key_variables):
        return True
    if provider == "bedrock" and any(environ.get(name) for name in _AMAZON):
        return True
    return not facts.key_required and given_address(provider, given) is not None


def address_without_key(provider: str, given: GivenOptions) -> str | None:
    """Return the address of a provider that needs no key, where the user has none for it.

    Args:
        provider: A provider of the table, an offline model, or `local`.
        given: What the user gave.

    Returns:
        The address; None for every other model, which is free to talk to.
    """
    facts = PROVIDERS.get(provider)
    if facts is None or facts.key_required or not facts.hosts or has_key(provider, given):
        return None
    return facts.default_base_url or f"https://{facts.hosts[0]}"


def only_talks(text: str, context: Context) -> bool:
    """Return whether a model spec names no file, no web tool and no host that has to be approved.

    Args:
        text: The spec, as written.
        context: The context its set is surveyed with, which caches the answer.
    """
    known = context.talking.get(text)
    if known is None:
        parsed = context.model(text)
        known = (
            parsed is not None
            and parsed.options.path is None
            and parsed.options.file is None
            and not (parsed.params.web_search or parsed.params.web_fetch)
            and address_without_key(parsed.provider, context.given) is None
        )
        context.talking[text] = known
    return known


def given_address(provider: str, given: GivenOptions) -> str | None:
    """Return the address of a provider that the user chose; None for the provider's own."""
    section = given.settings.provider(provider)
    return section.base_url or given.environ.get(PROVIDERS[provider].base_url_variable) or None


def destination(context: Context, model: str | None) -> tuple[str, str]:
    """Return the destination of what a card sends to its model.

    Args:
        context: The context the set is surveyed with.
        model: The model of the card, as written; None where it names none.

    Returns:
        Words for people, and the host; the host is empty where it is not known, or is none.
    """
    text = model or context.default_model or context.given.default_model
    places = dict.fromkeys(_destination(one, context) for one in context.models(text))
    if len(places) == 1:
        return next(iter(places))
    return ", ".join(dict.fromkeys(shown for shown, _ in places)), ""


def _destination(parsed: ParsedModel | None, context: Context) -> tuple[str, str]:
    if parsed is None:
        return "the model", ""
    if parsed.provider not in PROVIDERS:
        return f"the model `{parsed.provider}`", ""
    if parsed.endpoint is None:
        found = context.base_urls.get(parsed.provider)
        address = found or given_address(parsed.provider, context.given)
    else:
        found = context.base_urls.get(f"endpoints.{parsed.endpoint}")
        address = found or context.given.settings.endpoints[parsed.endpoint].base_url
    if address is not None:
        place = address_of(address)
        return str(place), place.host if place.scheme else ""
    hosts = PROVIDERS[parsed.provider].hosts
    host = hosts[0] if hosts and "*" not in hosts[0] else ""
    return (f"https://{host}", host) if host else (PROVIDERS[parsed.provider].label, "")


def model_of(values: Mapping[str, JsonValue]) -> str | None:
    """Return the model of a card as written, several with commas between; None where it has none.

    Args:
        values: The card, as written.
    """
    model = values.get("model")
    if isinstance(model, str):
        return model
    return ", ".join(one for one in as_list(model) if isinstance(one, str)) or None


def _is_keyed(parsed: ParsedModel | None, context: Context) -> bool:
    """Return whether the user's key goes with requests to a model."""
    if parsed is None or parsed.provider not in PROVIDERS:
        return False
    if parsed.endpoint is None:
        return has_key(parsed.provider, context.given)
    return parsed.endpoint in context.given.settings.endpoints


def is_own_address(provider: str, url: str) -> bool:
    """Return whether an address is that of the provider itself, over an encrypted connection."""
    place = address_of(url)
    return (place.scheme, place.port) == ("https", "443") and is_own_host(provider, place.host)


def talking(cards: Iterable[Card], context: Context) -> dict[str, str]:
    """Return the models that cards talk to with the user's keys, by agent.

    Args:
        cards: The cards of a set.
        context: The context the set is surveyed with.
    """
    from fast_agent.cards.fields import FIELDS_OF

    models: dict[str, str] = {}
    keyed: dict[str, bool] = {}
    for card in cards:
        if "model" not in FIELDS_OF[card.config.type]:
            continue
        values = card.written or {}
        text = model_of(values) or context.default_model or context.given.default_model
        if text not in keyed:
            keyed[text] = any(_is_keyed(one, context) for one in context.models(text))
        if keyed[text] and "api_key" not in values:
            models[card.config.name] = text
    return models
