"""The table of model queries: which keys each model takes after `?` in a model spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from fast_agent.cards.records import COUNT, REQUEST_PARAMS
from fast_agent.config.providers import PROVIDERS
from fast_agent.schema.kinds import Entry, Number, OneOf, Text, Whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
"""Levels of reasoning effort, the least first."""

LARGE_CONTEXT: Final = 1_000_000
"""Tokens of the window that `?context=1m` asks for."""

LARGE_WINDOW: Final = OneOf(("1m", str(LARGE_CONTEXT)))
"""How a query asks for that window."""

_REQUEST: Final = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "max_tokens",
    "presence_penalty",
    "frequency_penalty",
    "timeout_seconds",
)
_SERVER_TOOLS: Final = ("web_search", "web_fetch", "code_execution")


def _parameters(names: Iterable[str]) -> list[Entry]:
    by_name = {entry.name: entry for entry in REQUEST_PARAMS.entries}
    return [by_name[name] for name in names]


def _keys(*entries: Entry) -> Mapping[str, Entry]:
    return {entry.name: entry for entry in entries}


_CLOUD: Final = _keys(
    Entry("reasoning", OneOf(EFFORTS), "the reasoning effort", effects=()),
    *_parameters((*_REQUEST, *_SERVER_TOOLS)),
)

QUERY_KEYS: Final[Mapping[str, Mapping[str, Entry]]] = {
    **dict.fromkeys(PROVIDERS, _CLOUD),
    "anthropic": {
        **_CLOUD,
        **_keys(Entry("context", LARGE_WINDOW, "the context window in tokens", effects=())),
    },
    "local": _keys(
        Entry("path", Text(), "the GGUF file", effects=("run",)),
        Entry("threads", COUNT, "threads to compute with", effects=()),
        Entry("context", Whole(minimum=64), "the context window in tokens", effects=()),
        *_parameters(_REQUEST),
    ),
    "passthrough": {},
    "slow": _keys(Entry("seconds", Number(minimum=0), "seconds until it answers", effects=())),
    "playback": _keys(Entry("file", Text(), "the history", effects=("read",))),
    "scripted": _keys(
        Entry("file", Text(), "the script", effects=("read",)),
        Entry("seed", Whole(), "seed of what is random in the script", effects=()),
    ),
}
"""The keys each provider and offline model takes."""


def is_parameter(entry: Entry) -> bool:
    """Return whether a key is a parameter of each request; else the model is made with it."""
    return any(entry is one for one in REQUEST_PARAMS.entries)


def split_models(text: str) -> tuple[str, ...]:
    """Return the specs in a string of a model and those that answer if it fails.

    Args:
        text: Specs with commas between; a comma in a value is written as `%2C`.
    """
    return tuple(one.strip() for one in text.split(","))
