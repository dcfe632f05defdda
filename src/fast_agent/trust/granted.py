"""Granted servers: MCP servers that a program adds to those of its agents' cards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.cards.fields import FIELDS_OF
from fast_agent.cards.load_set import LoadSet

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from fast_agent.cards.card import Card


def with_granted(load_set: LoadSet, servers: Sequence[str], barred: Container[str] = ()) -> LoadSet:
    """Add servers to every agent a user can talk to, whose type uses servers.

    Args:
        load_set: The cards.
        servers: The names of the servers.
        barred: The names of agents that get none.

    Returns:
        The cards with them; the same set where there are none.
    """
    if not servers:
        return load_set
    cards = load_set.cards.items()
    return LoadSet.of([one if name in barred else _granted(one, servers) for name, one in cards])


def _granted(card: Card, servers: Sequence[str]) -> Card:
    config = card.config
    if config.tool_only or "servers" not in FIELDS_OF[config.type]:
        return card
    names = tuple(dict.fromkeys((*config.servers, *servers)))
    return replace(card, config=replace(config, servers=names))
