"""Edition: which cards a run began with, as a digest of everything they are made from."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.agents.card_inputs import card_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.cards.card import Card


def edition_of(cards: Iterable[Card], workspace: Path, *chosen: object) -> str:
    """Return the digest of a card set.

    Args:
        cards: The cards.
        workspace: Where relative paths of agents made in Python start, absolute.
        chosen: What was chosen over the cards, such as a model.

    Returns:
        The digest; the same as long as no card, function, template or choice changes.
    """
    digest = sha256(repr(chosen).encode())
    for card in cards:
        digest.update(repr(card.config).encode())
        for name in sorted(card_inputs(card.config, workspace=workspace)):
            path = Path(name)
            digest.update(name.encode(errors="surrogatepass"))
            if path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()[:20]
