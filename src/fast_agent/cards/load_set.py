"""A load-set: cards that stand together, what they must agree on, and the default among them."""

from __future__ import annotations

from dataclasses import field
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.set_check import (
    SetNames,
    check_default,
    check_names,
    check_references,
    check_servers,
    referred_names,
)
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card

Probe: TypeAlias = "Callable[[Card], Iterable[Diagnostic]]"
"""A check of a room above: what it finds wrong with one card, such as a file it names."""


@frozen
class LoadSet:
    """Cards that agree with each other; nothing in it ever changes.

    Args:
        cards: The cards by name, in load order.
        default: The name of the agent a user talks to first; None where every card is
            `tool_only` or there is none.
        callers: By agent, those that refer to it, itself too where it does.
    """

    cards: MappingProxyType[str, Card]
    default: str | None
    callers: Mapping[str, Sequence[str]] = field(repr=False, compare=False)

    @classmethod
    def of(cls, cards: Iterable[Card]) -> LoadSet:
        """Make a set of cards in which `check_set` finds no error.

        Args:
            cards: The cards in load order.

        Returns:
            The set.

        Raises:
            ValueError: Two cards have one name.
        """
        cards = tuple(cards)
        callers = _callers(cards)
        default = _default(cards, callers)
        name = None if default is None else default.config.name
        return cls(_by_name(cards), name, callers)

    def after(self, cards: Sequence[Card]) -> LoadSet:
        """Make the set that follows this one; it is `of`, quick where little changed.

        Args:
            cards: The cards in load order.

        Returns:
            The set.

        Raises:
            ValueError: Two cards have one name.
        """
        if len(cards) != len(self.cards):
            return LoadSet.of(cards)
        changed = changed_cards(self.cards.values(), cards)
        if not all(_look_alike(old.config, new.config) for old, new in changed):
            return LoadSet.of(cards)
        now = self.cards | {new.config.name: new for _, new in changed}
        return LoadSet(MappingProxyType(now), self.default, self.callers)

    def dependents(self, names: Iterable[str]) -> frozenset[str]:
        """Name the agents that refer, at any remove, to one of some."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            for name in self.callers.get(waiting.pop(), ()):
                if name not in found:
                    found.add(name)
                    waiting.append(name)
        return frozenset(found)

    def facts(self) -> tuple[CardFact, ...]:
        """Return what `check` reports of each card, in load order."""
        return card_facts(tuple(self.cards.values()))


def agents_below(cards: Mapping[str, Card], name: str) -> frozenset[str]:
    """Name the agents that one refers to, at any remove."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        names = {*referred_names(cards[waiting.pop()].config)} & cards.keys()
        waiting += names - found
        found |= names
    return frozenset(found)


def _by_name(cards: Sequence[Card]) -> MappingProxyType[str, Card]:
    by_name = {card.config.name: card for card in cards}
    if len(by_name) != len(cards):
        for card in cards:
            if by_name[card.config.name] is not card:
                raise ValueError(f"two cards are called {card.config.name!r}")
    return MappingProxyType(by_name)


def _look_alike(old: AgentConfig, new: AgentConfig) -> bool:
    """Whether two configurations look the same to neighbouring agents."""
    return old is new or (
        (old.name, old.default, old.tool_only) == (new.name, new.default, new.tool_only)
        and referred_names(old) == referred_names(new)
    )


def _callers(cards: Iterable[Card]) -> Mapping[str, Sequence[str]]:
    callers: dict[str, list[str]] = {}
    for card in cards:
        for name in referred_names(card.config):
            callers.setdefault(name, []).append(card.config.name)
    return MappingProxyType(callers)


def default_card(cards: Sequence[Card]) -> Card | None:
    """Choose the card a user talks to first.

    It is the one with `default: true`; else the only card no other refers to; else, of several
    such cards, the only one that refers to others; else the first in load order. A `tool_only` card
    is never chosen.

    Args:
        cards: The cards in load order.

    Returns:
        The card, or None where there is none to choose.
    """
    return _default(cards, _callers(cards))


def _default(cards: Sequence[Card], callers: Mapping[str, Sequence[str]]) -> Card | None:
    eligible = [card for card in cards if not card.config.tool_only]
    for card in eligible:
        if card.config.default:
            return card
    # An agent that only it refers to is still unused.
    referred = {name for name, by in callers.items() if any(one != name for one in by)}
    roots = [card for card in eligible if card.config.name not in referred]
    if len(roots) == 1:
        return roots[0]
    callers_of_others = {one for by in callers.values() for one in by}
    leading = [card for card in roots if card.config.name in callers_of_others]
    if len(leading) == 1:
        return leading[0]
    return eligible[0] if eligible else None


def default_choice(cards: Sequence[Card]) -> Diagnostic | None:
    """Return a note that names the default agent, where several cards could be it."""
    callers = _callers(cards)
    chosen = _default(cards, callers)
    referred = {name for name, by in callers.items() if any(one != name for one in by)}
    others = [
        card.config.name
        for card in cards
        if card is not chosen and not card.config.tool_only and card.config.name not in referred
    ]
    if chosen is None or chosen.config.default or not others:
        return None
    uses_others = any(chosen.config.name in by for by in callers.values())
    why = "it uses others, and none uses it" if uses_others else "it is the first that is loaded"
    listed = ", ".join(f"`{name}`" for name in others[:5])
    return Diagnostic(
        rules.CHOSEN_DEFAULT,
        f"`{chosen.config.name}` is the default agent, not {listed}: {why}",
        chosen.path,
        chosen.span_of("name", key=True),
        severity=rules.CHOSEN_DEFAULT.severity,
        hint="write `default: true` in the card a conversation starts with",
    )


def card_facts(cards: Sequence[Card]) -> tuple[CardFact, ...]:
    """Return what `check` reports of each card, whether or not the set is valid.

    Args:
        cards: The cards in load order.

    Returns:
        One fact for each, in the same order.
    """
    default = default_card(cards)
    return tuple(
        CardFact(
            name=card.config.name,
            type=card.config.type,
            path=card.path,
            default=card is default,
            tool_only=card.config.tool_only,
        )
        for card in cards
    )


def check_set(
    cards: Sequence[Card],
    *,
    servers: Collection[str] | None = None,
    probes: Iterable[Probe] = (),
    unread: Collection[str] = (),
) -> tuple[Diagnostic, ...]:
    """Check what a single card cannot reveal.

    Args:
        cards: The cards in load order.
        servers: Names of the MCP servers the configuration defines; None where there is no
            configuration to ask.
        probes: Checks of the rooms above, each asked about each card.
        unread: Names of cards that could not be read: references to them are not a problem of
            their own.

    Returns:
        Every problem, in the order of the cards and then of their lines.
    """
    names = SetNames.of(cards, unread)
    order: dict[str, int] = {}
    for number, card in enumerate(cards):
        order.setdefault(card.path, number)
    found = [
        (order[problem.path], problem)
        for problem in chain(
            check_names(cards, names),
            check_references(cards, names),
            check_servers(cards, servers),
            check_default(cards),
        )
    ]
    for probe in probes:
        for card in cards:
            found.extend([(order[card.path], problem) for problem in probe(card)])
    found.sort(key=_place)
    return tuple(problem for _, problem in found)


def _place(item: tuple[int, Diagnostic]) -> tuple[int, str, int, int]:
    number, problem = item
    if problem.span is None:
        return number, problem.path, 0, 0
    return number, problem.path, problem.span.start.line, problem.span.start.column


def changed_cards(before: Collection[Card], now: Collection[Card]) -> list[tuple[Card, Card]]:
    """Pair the cards that are other objects now with those in their places before.

    Args:
        before: The cards before, in load order.
        now: As many cards.

    Returns:
        The pairs, in load order: (before, now).
    """
    pairs = zip(before, now, strict=True)
    return [(old, new) for old, new in pairs if old is not new]
