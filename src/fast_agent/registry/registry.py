"""The registry: which agents there are now, and where each came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.load_set import LoadSet, check_set, default_card
from fast_agent.errors import CardError
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.cards.load import CardLoad
    from fast_agent.cards.load_set import Probe
    from fast_agent.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True)
class Additions:
    """What an agent was given at run time, over its card.

    Args:
        agents: Agents it may call as tools.
        servers: MCP servers it uses.
    """

    agents: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()

    def over(self, config: AgentConfig) -> AgentConfig:
        """Give a configuration with these additions; what it has already is not added again."""
        agents = tuple(name for name in self.agents if name not in config.agents)
        servers = tuple(name for name in self.servers if name not in config.servers)
        if not agents and not servers:
            return config
        return replace(
            config, agents=(*config.agents, *agents), servers=(*config.servers, *servers)
        )


Roots: TypeAlias = "Mapping[str, tuple[Card, ...]]"
"""Cards by the root they were loaded from: an absolute path or an address, in load order."""

CODE = "<code>"
"""The root of agents that decorators made."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The agents at one moment; replaced as a whole, never changed.

    Args:
        version: Rises by one whenever something changed; 0 is the empty registry.
        load_set: The agents, checked together.
        roots: The cards as they were loaded, by root.
        added: What agents were given at run time, by their names.
        notes: Warnings and notes of the checks that let this set pass.
    """

    version: int
    load_set: LoadSet
    roots: Roots
    added: Mapping[str, Additions]
    notes: tuple[Diagnostic, ...] = ()

    def names_of(self, root: str) -> tuple[str, ...]:
        """Name the agents a root gave, in load order."""
        return tuple(card.config.name for card in self.roots.get(root, ()))


_EMPTY = Snapshot(0, LoadSet.of(()), MappingProxyType({}), MappingProxyType({}))


class Registry:
    """Holds the current snapshot. A change happens whole or not at all.

    Args:
        servers: Names of the configured MCP servers.
        probes: Checks of each card by the rooms above the cards.
    """

    def __init__(self, servers: Collection[str], probes: Iterable[Probe] = ()) -> None:
        self._servers = servers
        self._probes = tuple(probes)
        self._snapshot = _EMPTY

    @property
    def snapshot(self) -> Snapshot:
        """The agents now."""
        return self._snapshot

    def load(
        self,
        loads: Mapping[str, CardLoad],
        *,
        tools: Collection[str] = (),
        servers: Collection[str] = (),
        receiver: str | None = None,
    ) -> tuple[str, ...]:
        """Take in what was loaded; agents that are gone from a root are removed.

        Args:
            loads: What each root gave.
            tools: Those of the roots whose agents become tools of another agent.
            servers: MCP servers another agent gets.
            receiver: The agent that gets these tools and servers; None is the default agent.

        Returns:
            The names of the agents loaded, in load order.

        Raises:
            CardError: With every problem there is; the registry is as it was.
        """
        before = self._snapshot
        roots = dict(before.roots)
        problems: list[Diagnostic] = []
        for root, load in loads.items():
            problems.extend(load.diagnostics)
            roots[root] = load.cards
        roots = _without_repeats(_refreshed(roots, loads))
        added = dict(before.added)
        sound = not any(problem.severity == "error" for problem in problems)
        if sound and (tools or servers):
            children = [card.config.name for root in tools for card in roots.get(root, ())]
            others = [card for root, cards in roots.items() if root not in tools for card in cards]
            if receiver is not None:
                _see_that_there_is(receiver, roots)
            _give(others, children, servers, receiver, added)
        unread = tuple(name for load in loads.values() for name in load.unread)
        self._swap(roots, added, problems, unread)
        names = (card.config.name for load in loads.values() for card in load.cards)
        return tuple(dict.fromkeys(names))

    def add(self, card: Card) -> None:
        """Take in an agent a decorator made; `check` speaks of what it refers to.

        Raises:
            CardError: Another agent has its name.
        """
        roots = dict(self._snapshot.roots)
        roots[CODE] = (*roots.get(CODE, ()), card)
        # A decorator further down may make what this one refers to.
        taken = self._snapshot.load_set.cards.get(card.config.name)
        if taken is not None:
            raise CardError(
                f"there are two agents called `{card.config.name}`",
                hint=f"the other one is {f'in {taken.path}' if taken.path else 'made in code too'}",
            )
        before = self._snapshot
        self._snapshot = _snapshot(before, roots, before.added, (), changed=True)

    def check(self) -> None:
        """Check all agents together.

        Raises:
            CardError: With every problem there is.
        """
        self._swap(dict(self._snapshot.roots), self._snapshot.added, [])

    def _swap(
        self,
        roots: Roots,
        added: Mapping[str, Additions],
        problems: list[Diagnostic],
        unread: Collection[str] = (),
    ) -> None:
        cards = _with_additions(roots, added)
        problems.extend(check_set(cards, servers=self._servers, probes=self._probes, unread=unread))
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise CardError(_headline(errors), hint=errors[0].hint, diagnostics=problems)
        before = [card.config for card in self._snapshot.load_set.cards.values()]
        changed = [card.config for card in cards] != before
        self._snapshot = _snapshot(self._snapshot, roots, added, problems, changed=changed)


def _snapshot(
    before: Snapshot,
    roots: Roots,
    added: Mapping[str, Additions],
    notes: Iterable[Diagnostic],
    *,
    changed: bool,
) -> Snapshot:
    return Snapshot(
        before.version + changed,
        LoadSet.of(_with_additions(roots, added)),
        MappingProxyType(dict(roots)),
        MappingProxyType(dict(added)),
        tuple(notes),
    )


def _refreshed(
    roots: Mapping[str, tuple[Card, ...]], loads: Mapping[str, CardLoad]
) -> dict[str, tuple[Card, ...]]:
    """Bring cards up to date in roots that hold a file which was just read by another root."""
    fresh: dict[object, tuple[Card, ...]] = {}
    for load in loads.values():
        for card in load.cards:
            if card.config.source is not None:
                fresh[card.config.source] = (*fresh.get(card.config.source, ()), card)
    kept: dict[str, tuple[Card, ...]] = {}
    for root, cards in roots.items():
        if root in loads:
            kept[root] = cards
            continue
        taken: dict[object, tuple[Card, ...]] = {}
        for card in cards:
            source = card.config.source
            key = card.config.name if source is None else source
            taken[key] = fresh.get(source) or (*taken.get(key, ()), card)
        kept[root] = tuple(card for group in taken.values() for card in group)
    return kept


def _without_repeats(roots: Roots) -> dict[str, tuple[Card, ...]]:
    """Keep a file that two roots hold, such as a directory and a file in it, once."""
    seen: set[object] = set()
    kept: dict[str, tuple[Card, ...]] = {}
    for root, cards in roots.items():
        files = {card.config.source for card in cards if card.config.source is not None}
        kept[root] = tuple(card for card in cards if card.config.source not in seen)
        seen |= files
    return kept


def _see_that_there_is(name: str, roots: Roots) -> None:
    names = [card.config.name for cards in roots.values() for card in cards]
    if name not in names:
        near = closest(name, names)
        hint = f"did you mean `{near}`?" if near else "load its card too, or correct the name"
        raise CardError(f"there is no agent `{name}`", hint=hint)


def _give(
    others: Sequence[Card],
    agents: Iterable[str],
    servers: Iterable[str],
    receiver: str | None,
    added: dict[str, Additions],
) -> None:
    """Add agents and servers to what the receiver, the default agent unless named, is given."""
    default = default_card(others)
    if receiver is None:
        if default is None:
            raise CardError(
                "there is no agent to give the tools to",
                hint="load an agent with `--card`, or name one with `--agent`",
            )
        receiver = default.config.name
    # An agent is never its own tool.
    children = [name for name in agents if name != receiver]
    before = added.get(receiver, Additions())
    added[receiver] = Additions(
        tuple(dict.fromkeys((*before.agents, *children))),
        tuple(dict.fromkeys((*before.servers, *servers))),
    )


def _with_additions(roots: Roots, added: Mapping[str, Additions]) -> Sequence[Card]:
    cards = [card for group in roots.values() for card in group]
    if not added:
        return cards
    return [
        replace(card, config=added[card.config.name].over(card.config))
        if card.config.name in added
        else card
        for card in cards
    ]


def _headline(errors: Sequence[Diagnostic]) -> str:
    if len(errors) == 1:
        return f"{errors[0].path}: {errors[0].message}" if errors[0].path else errors[0].message
    return f"{len(errors)} problems in the cards; the first: {errors[0].message}"
