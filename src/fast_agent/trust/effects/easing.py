"""Easing: bounds that a found set would weaken, and the stricter value that holds instead."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fast_agent.config.settings import MAX_ITERATIONS, StatedFacts
from fast_agent.text.json_value import as_object
from fast_agent.trust.effects.card_effects import is_weaker
from fast_agent.trust.effects.config_effects import DEFAULT_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from fast_agent.cards.agent_config import AgentConfig, RequestParams, UsageLimits
    from fast_agent.config.settings import Settings
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.effect import Effect, Holder
    from fast_agent.trust.site import Keys


_BOUNDS: Final[Mapping[str, frozenset[str]]] = {
    "shell": frozenset({"timeout_seconds", "max_output_bytes"}),
    "sessions": frozenset({"disk_seconds", "lease_seconds"}),
    "request_params": frozenset({"max_iterations", "maxIterations", "usage_limits", "usageLimits"}),
}
"""Settings that only bound what is done, by section."""


def dropped(holder: Holder, value: JsonValue) -> Iterator[Keys]:
    """Yield the settings of a file that are left out with a holder; its plain bounds still hold.

    Args:
        holder: A server, setting or guide that is not approved.
        value: What the file says.
    """
    if holder.kind == "server":
        yield ("mcp", "servers", holder.name)
    elif holder.kind == "guide":
        yield ("guide",)  # a docroot of the configuration leads to it
    elif holder.kind == "setting":
        section = as_object(as_object(value).get(holder.name))
        kept = [
            key
            for key in section
            if key in _BOUNDS.get(holder.name, ()) and _is_plain(section[key])
        ]
        if kept:
            yield from ((holder.name, key) for key in section if key not in kept)
        else:
            yield tuple(holder.name.split("."))


def _is_plain(value: JsonValue) -> bool:
    """Return whether a value holds no text, and so no variable."""
    return not isinstance(value, str) and all(map(_is_plain, as_object(value).values()))


def without_easing(config: AgentConfig, eases: Iterable[Effect]) -> AgentConfig:
    """Return a card with the effective bounds instead of the unapproved ones.

    Args:
        config: The card.
        eases: Its effects of the kind `ease` that are not allowed.
    """
    for effect in eases:
        name, *inner = map(_field_name, map(str, effect.keys))
        if name != "request_params":
            config = replace(config, **{name: effect.instead})
        elif config.request_params is not None:
            params = _unset_param(config.request_params, inner)
            config = replace(config, request_params=params)
    return config


def _unset_param(params: RequestParams, keys: list[str]) -> RequestParams:
    """Unset a parameter, so that the one of the configuration or the default holds."""
    if len(keys) == 1:
        return replace(params, **{keys[0]: None})
    limits = params.usage_limits
    return params if limits is None else replace(params, usage_limits=_unset(limits, keys[1]))


def _unset(limits: UsageLimits, name: str) -> UsageLimits:
    return replace(limits, **{name: None})


def with_bounds_of(user: Settings, settings: Settings, eased: Collection[str]) -> Settings:
    """Return a configuration in which the bounds of the user hold where they are stricter.

    A found configuration is read instead of that of the home, whose bounds it must not undo by
    leaving them out.

    Args:
        user: The configuration of the user alone.
        settings: The configuration that was found.
        eased: The bounds that may be weaker, such as `shell.timeout_seconds`.
    """
    for (section, name), default in DEFAULT_BOUNDS.items():
        own = getattr(getattr(user, section), name)
        values = getattr(settings, section)
        value = getattr(values, name)
        if f"{section}.{name}" not in eased and _is_stricter(
            own, default if value is None else value
        ):
            changed: dict[str, Any] = {section: replace(values, **{name: own})}
            settings = replace(settings, **changed)
    params, own = settings.request_params, user.request_params
    most = MAX_ITERATIONS if params.max_iterations is None else params.max_iterations
    if "max_iterations" not in eased and _is_stricter(own.max_iterations, most):
        params = replace(params, max_iterations=own.max_iterations)
    if own.usage_limits is not None:
        limits = own.usage_limits if params.usage_limits is None else params.usage_limits
        for name in ("max_requests", "max_total_tokens", "max_tool_calls", "max_cost"):
            kept = getattr(own.usage_limits, name)
            value = getattr(limits, name)
            if f"usage_limits.{name}" not in eased and (value is None or _is_stricter(kept, value)):
                limits = replace(limits, **{name: kept})
        params = replace(params, usage_limits=limits)
    if params is not settings.request_params:
        settings = replace(settings, request_params=params)
    return _with_models_of(user, settings, eased)


def _with_models_of(user: Settings, settings: Settings, eased: Collection[str]) -> Settings:
    if user.model_limits:
        settings = replace(settings, model_limits={**settings.model_limits, **user.model_limits})
    found = settings.model_facts
    if "usage_limits.max_cost" not in eased:
        # A found price of nothing would undo a bound of money.
        windows = ((name, facts.context_window) for name, facts in found.items())
        found = {name: StatedFacts(context_window=window) for name, window in windows}
    if not found and not user.model_facts:
        return settings
    return replace(settings, model_facts={**found, **user.model_facts})


def _is_stricter(own: float | None, value: float) -> bool:
    return own is not None and is_weaker(value, own)


def _field_name(key: str) -> str:
    """Return a key in the spelling of Python: `maxRequests` is `max_requests`."""
    return re.sub(r"([A-Z])", r"_\1", key).lower()
