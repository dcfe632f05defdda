"""Changed cards: where two lists of cards differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from fast_agent.cards.card import Card


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
