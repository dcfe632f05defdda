"""Additions: what agents are given at run time, over their cards, and keep when cards reload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.card import Card
from fast_agent.cards.fields import FIELDS_OF
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import ATTACHED_AGENT_GONE, CALLS_NO_AGENTS
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from fast_agent.cards.agent_config import AgentConfig

Roots: TypeAlias = Mapping[str, tuple[Card, ...]]
"""Cards by the root they were loaded from: an absolute path or an address, in load order."""


@frozen
class Additions:
    """What an agent was given at run time, over its card.

    Args:
        agents: Agents it may call as tools.
        servers: MCP servers it uses.
        roots: Roots all of whose agents it may call, those that come later too.
    """

    agents: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()

    def with_more(self, roots: Iterable[str], servers: Iterable[str]) -> Additions:
        """Return these and more; nothing is held twice."""
        return replace(
            self,
            roots=tuple(dict.fromkeys((*self.roots, *roots))),
            servers=tuple(dict.fromkeys((*self.servers, *servers))),
        )

    def over(self, config: AgentConfig, agents: Iterable[str]) -> AgentConfig:
        """Return a configuration with these additions; what it already has is not added again.

        Args:
            config: The configuration of its card.
            agents: Those of the agents given to it that there are.
        """
        more = tuple(name for name in dict.fromkeys(agents) if name not in config.agents)
        servers = tuple(name for name in self.servers if name not in config.servers)
        if not more and not servers:
            return config
        return replace(config, agents=(*config.agents, *more), servers=(*config.servers, *servers))


def with_additions(
    roots: Roots, added: Mapping[str, Additions], before: Mapping[str, Card]
) -> tuple[tuple[Card, ...], list[Diagnostic]]:
    """Return all cards with their additions.

    Args:
        roots: The cards as they were loaded.
        added: The additions, by agent.
        before: The cards of the last snapshot; one that comes out the same is used again.

    Returns:
        The cards in load order, and a warning for each agent that was given to another and is not
        there now; it is given again when it comes back.
    """
    groups = tuple(roots.values())
    # One root is the common case; its cards are given on as they are, not copied.
    every = groups[0] if len(groups) == 1 else tuple(chain.from_iterable(groups))
    if not added:
        return every, []
    cards = list(every)
    names = {card.config.name for card in cards}
    lost: list[Diagnostic] = []
    for number, card in enumerate(cards):
        name = card.config.name
        own = added.get(name)
        if own is None:
            continue
        lost.extend(_gone(card, own, names))
        given = [one for one in _agents_of(own, roots) if one in names and one != name]
        if given and not calls_agents(card.config):
            lost.append(_workless(card))
            given = []
        config = own.over(card.config, given)
        if config is not card.config:
            known = before.get(name)
            same = known is not None and known.config == config and known.document is card.document
            cards[number] = known if known and same else replace(card, config=config)
    return tuple(cards), lost


def _agents_of(own: Additions, roots: Roots) -> Iterable[str]:
    yield from own.agents
    for root in own.roots:
        yield from (card.config.name for card in roots.get(root, ()))


def calls_agents(config: AgentConfig) -> bool:
    """Whether an agent of this type can be given others to call."""
    return "agents" in FIELDS_OF[config.type]


def _workless(card: Card) -> Diagnostic:
    config = card.config
    return Diagnostic(
        CALLS_NO_AGENTS,
        f"`{config.name}` is of type `{config.type}`, and calls none of the agents given to it",
        card.path,
        severity="warning",
        hint="give them to another agent with `--agent NAME`",
    )


def _gone(card: Card, own: Additions, names: Collection[str]) -> Iterable[Diagnostic]:
    for name in own.agents:
        if name not in names:
            yield Diagnostic(
                ATTACHED_AGENT_GONE,
                f"`{name}`, given to `{card.config.name}` as a tool, is not there any more",
                card.path,
                severity="warning",
                hint="it becomes a tool again when its card comes back",
            )
