"""Set checks: cards checked together, without asking again what cannot have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.cards.load_set import changed_cards, check_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import Probe
    from fast_agent.diagnostics.diagnostic import Diagnostic


class SetChecks:
    """What `check_set` finds, remembered from one set of cards to the next.

    Args:
        servers: Names of the configured MCP servers.
        probes: Checks of each card by the rooms above the cards.
    """

    def __init__(self, servers: Collection[str], probes: Iterable[Probe]) -> None:
        self._servers = servers
        self._probes = tuple(probes)
        self._probed: dict[int, tuple[Card, tuple[Diagnostic, ...]]] = {}
        self._cards: tuple[Card, ...] = ()
        self._found: tuple[Diagnostic, ...] = ()
        self._whole = False

    def find(
        self, cards: Sequence[Card], *, touched: Collection[str], unread: Collection[str]
    ) -> tuple[Diagnostic, ...]:
        """Check cards; see `check_set`.

        Args:
            cards: The cards in load order.
            touched: Agents whose cards stand on files that changed.
            unread: Names of cards that could not be read.
        """
        if not unread and self._whole and self._still_holds(cards, touched):
            self._cards = tuple(cards)
            return self._found
        probe = self._probe_again(cards, touched)
        self._found = check_set(cards, servers=self._servers, probes=(probe,), unread=unread)
        self._cards, self._whole = tuple(cards), not unread
        return self._found

    def _still_holds(self, cards: Sequence[Card], touched: Collection[str]) -> bool:
        """Whether the cards differ from those before only in what no other card can tell."""
        if len(cards) != len(self._cards):
            return False
        if touched:
            pairs = zip(self._cards, cards, strict=True)
            changed = [
                (old, new) for old, new in pairs if old is not new or new.config.name in touched
            ]
        else:
            changed = changed_cards(self._cards, cards)
        if not all(_alike(old, new) for old, new in changed):
            return False
        paths = {new.path for _, new in changed}
        if any(_speaks_of(problem, paths) for problem in self._found):
            return False
        for old, new in changed:
            found = self._ask(new)
            self._probed.pop(id(old), None)
            self._probed[id(new)] = new, found
            if found:
                return False
        return True

    def _probe_again(self, cards: Sequence[Card], touched: Collection[str]) -> Probe:
        """Probe the cards that are new, or whose files changed; the others were probed before."""
        before = self._probed
        now: dict[int, tuple[Card, tuple[Diagnostic, ...]]] = {}
        for card in cards:
            known = before.get(id(card))
            if known is None or known[0] is not card or card.config.name in touched:
                known = card, self._ask(card)
            now[id(card)] = known
        self._probed = now
        return lambda card: now[id(card)][1]

    def _ask(self, card: Card) -> tuple[Diagnostic, ...]:
        return tuple([one for probe in self._probes for one in probe(card)])


def _alike(old: Card, new: Card) -> bool:
    """Whether all but the words of two cards is the same; every other field is taken to matter."""
    if old.path != new.path:
        return False
    one, other = old.config, new.config
    if one is other:
        return True
    return one == replace(other, instruction=one.instruction, description=one.description)


def _speaks_of(problem: Diagnostic, paths: Collection[str]) -> bool:
    return problem.path in paths or any(one.path in paths for one in problem.related)
