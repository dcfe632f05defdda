"""Names of models in other tools, as a card names them."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from fast_agent.config.providers import PROVIDERS
from fast_agent.errors import ModelError
from fast_agent.models.spec import parse_model_spec
from fast_agent.models.spec_query import EFFORTS

_NO_CHOICE = frozenset({"inherit", "auto", "default", "inherited", "auto (copilot)"})
_PROVIDER = {
    "amazon-bedrock": "bedrock",
    "aws-bedrock": "bedrock",
    "gemini": "google",
    "google-vertex": "google",
    "vertexai": "google",
    "x-ai": "xai",
    "dmr": "generic",
    "huggingface": "hf",
    "github-copilot": None,
    "opencode": None,
}
"""Providers under other names; None for those that only pass other models on."""

_VERSION = re.compile(r"(?<=\d)\.(?=\d)")
_EFFORT_WORDS = {"max": "xhigh", "minimum": "minimal"}


class CardModel(NamedTuple):
    """A model as a card names it.

    Args:
        spec: The model; None for the one of the configuration.
        note: What is different, or None.
        problem: Why there is none, or None.
        hint: What to do.
        has_effort: Whether the reasoning effort is part of it.
    """

    spec: str | None
    note: str | None = None
    problem: str | None = None
    hint: str | None = None
    has_effort: bool = True


@cache
def card_model(name: str, effort: str | None = None) -> CardModel:
    """Find what a card calls a model.

    Args:
        name: Such as `sonnet`, `anthropic/claude-sonnet-4-5`, `Claude Sonnet 4.5 (copilot)`.
        effort: Its reasoning effort, or None.

    Returns:
        The model.
    """
    if name.lower() in _NO_CHOICE:
        told = f"`{name}` leaves the model to the configuration, as a card without `model` does"
        return CardModel(None, note=told, has_effort=effort is None)
    level = None if effort is None else _EFFORT_WORDS.get(effort, effort)
    for spec in _spellings(name):
        if level is not None and level in EFFORTS and _is_known(f"{spec}.{level}"):
            return CardModel(f"{spec}.{level}", _changed(name, f"{spec}.{level}"))
        if _is_known(spec):
            return CardModel(spec, _changed(name, spec), has_effort=level is None)
    return CardModel(
        None,
        problem=f"no model is known as `{name}`",
        hint="write `model: PROVIDER.NAME` in the card; `fast-agent models` lists providers",
        has_effort=effort is None,
    )


def _changed(name: str, spec: str) -> str | None:
    return None if name == spec else f"the model `{name}` is `{spec}` in a card"


def _spellings(name: str) -> list[str]:
    plain = re.sub(r"\s*\([^)]*\)\s*$", "", name).strip()
    found: list[str] = []
    if "/" in plain:
        first, _, rest = plain.partition("/")
        provider = _PROVIDER.get(first.lower(), first.lower())
        if provider is None:
            found += _spellings(rest)
        elif provider in PROVIDERS:
            found.append(f"{provider}.{rest}")
    slug = "-".join(plain.lower().split())
    if slug.startswith("claude-"):
        found.append(_VERSION.sub("-", slug))
    found += [plain, slug]
    return list(dict.fromkeys(found))


def _is_known(spec: str) -> bool:
    if not spec or any(character.isspace() for character in spec) or spec.startswith("scripted"):
        return False
    try:
        parse_model_spec(spec)
    except ModelError:
        return False
    return True
