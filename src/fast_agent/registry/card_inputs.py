"""Card inputs: files beside a card that its agent is made from, watched with the card."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.load_set import changed_cards
from fast_agent.text.source import signature_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.text.source import Signature

InputsOf: TypeAlias = "Callable[[AgentConfig], Iterable[str]]"
"""Names the files an agent is made from besides its card, absolute; they may be missing."""


class CardInputs:
    """The state of the files that cards stand on.

    Args:
        inputs_of: Names the files of one card.
    """

    def __init__(self, inputs_of: InputsOf) -> None:
        self._inputs_of = inputs_of
        self._taken: tuple[Card, ...] = ()
        self._cards: dict[str, tuple[AgentConfig, tuple[str, ...]]] = {}
        self._signatures: dict[str, Signature | None] = {}

    def take(self, cards: Iterable[Card]) -> None:
        """Note the cards there are; what changes from now on is noticed."""
        before, self._taken = self._taken, tuple(cards)
        if not self._stand_alike(before, self._taken):
            self._take_all(self._taken)

    def _stand_alike(self, before: tuple[Card, ...], cards: tuple[Card, ...]) -> bool:
        """Note the cards that changed, if each stands on the files it stood on before."""
        if len(before) != len(cards):
            return False
        for old, new in changed_cards(before, cards):
            name, config = new.config.name, new.config
            paths = tuple(self._inputs_of(config))
            if name != old.config.name or paths != self._cards[name][1]:
                return False
            self._cards[name] = config, paths
        return True

    def _take_all(self, cards: Iterable[Card]) -> None:
        before = self._cards
        now: dict[str, tuple[AgentConfig, tuple[str, ...]]] = {}
        paths: dict[str, None] = {}
        for card in cards:
            config = card.config
            name = config.name
            known = before.get(name)
            if known is None or known[0] is not config:
                known = config, tuple(self._inputs_of(config))
            now[name] = known
            if known[1]:
                paths.update(dict.fromkeys(known[1]))
        self._cards = now
        old = self._signatures
        self._signatures = {
            path: old[path] if path in old else signature_at(path) for path in paths
        }

    def touched(self) -> frozenset[str]:
        """Name the agents a file of which changed since this was last asked."""
        changed: set[str] = set()
        for path, before in self._signatures.items():
            now = signature_at(path)
            if now != before:
                self._signatures[path] = now
                changed.add(path)
        if not changed:
            return frozenset()
        names: set[str] = set()
        for name, (config, paths) in self._cards.items():
            if not changed.isdisjoint(paths):
                names.add(name)
                # Files beside it may have come or gone.
                self._cards[name] = config, tuple(self._inputs_of(config))
        for _, paths in self._cards.values():
            for path in paths:
                self._signatures.setdefault(path, signature_at(path))
        return frozenset(names)

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, to be watched."""
        return tuple(self._signatures)
