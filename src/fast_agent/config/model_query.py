"""The table of model queries: which keys each model takes after `?` in a model spec."""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 (`dataclass` resolves it by its name)
from typing import TYPE_CHECKING, Final, Literal

from fast_agent.config.providers import PROVIDERS
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.schema.kinds import Effects


@frozen
class QueryKey:
    """One key a query may hold.

    Args:
        kind: What its value is read as.
        effects: What it can make a found file do; `()` is nothing.
        minimum: Least value of a number.
        maximum: Greatest value of a number.
        above: The least value itself is not allowed.
        option: The model is made with it; otherwise it is a parameter of each request.
    """

    kind: Literal["text", "integer", "number", "effort", "flag", "large"]
    _: KW_ONLY
    effects: Effects
    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    option: bool = True


_REQUEST: Final[Mapping[str, QueryKey]] = {
    "temperature": QueryKey("number", minimum=0, option=False, effects=()),
    "top_p": QueryKey("number", minimum=0, maximum=1, above=True, option=False, effects=()),
    "top_k": QueryKey("integer", minimum=1, option=False, effects=()),
    "seed": QueryKey("integer", option=False, effects=()),
    "max_tokens": QueryKey("integer", minimum=1, option=False, effects=()),
    "presence_penalty": QueryKey("number", minimum=-2, maximum=2, option=False, effects=()),
    "frequency_penalty": QueryKey("number", minimum=-2, maximum=2, option=False, effects=()),
    "timeout_seconds": QueryKey("number", minimum=0, above=True, option=False, effects=()),
}
"""Keys that become request parameters."""

LARGE_CONTEXT: Final = 1_000_000
"""Tokens of the window that `?context=1m` asks for."""

_SERVER_TOOLS: Final[Mapping[str, QueryKey]] = {
    "web_search": QueryKey("flag", option=False, effects=("connect",)),
    "web_fetch": QueryKey("flag", option=False, effects=("connect",)),
    "code_execution": QueryKey("flag", option=False, effects=()),
}
"""Tools that run at the provider."""

_CLOUD: Final[Mapping[str, QueryKey]] = {
    "reasoning": QueryKey("effort", effects=()),
    **_REQUEST,
    **_SERVER_TOOLS,
}

QUERY_KEYS: Final[Mapping[str, Mapping[str, QueryKey]]] = {
    **dict.fromkeys(PROVIDERS, _CLOUD),
    "anthropic": {**_CLOUD, "context": QueryKey("large", effects=())},
    "local": {
        "path": QueryKey("text", effects=("run",)),
        "threads": QueryKey("integer", minimum=1, effects=()),
        "context": QueryKey("integer", minimum=64, effects=()),
        **_REQUEST,
    },
    "passthrough": {},
    "slow": {"seconds": QueryKey("number", minimum=0, effects=())},
    "playback": {"file": QueryKey("text", effects=("read",))},
    "scripted": {
        "file": QueryKey("text", effects=("read",)),
        "seed": QueryKey("integer", effects=()),
    },
}
"""The keys each provider and offline model takes."""


def split_models(text: str) -> tuple[str, ...]:
    """Return the specs in a string of a model and those that answer if it fails.

    Args:
        text: Specs with commas between; a comma in a value is written as `%2C`.
    """
    return tuple(one.strip() for one in text.split(","))
