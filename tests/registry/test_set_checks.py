from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.registry.registry import SetChecks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.registry.conftest import WriteCard

    from fast_agent.cards.card import Card

NAMES = ("ann", "bob", "cid", "dan")
SERVERS = ("time",)


class Directory:
    """Cards that change at random, read one file at a time."""

    def __init__(self, place: Path, draw: Random) -> None:
        self._place = place
        self._draw = draw
        self._cards: dict[str, Card] = {}
        for name in NAMES:
            self.edit(name, 1)

    @property
    def cards(self) -> list[Card]:
        return list(self._cards.values())

    def edit(self, name: str, words_only: float) -> None:
        """Change a card: its words always, its other fields unless `words_only` draws so."""
        draw, path = self._draw, self._place / f"{name}.md"
        if name not in self._cards or draw.random() >= words_only:
            fields = [f"name: {draw.choice((name, name, name, 'ann', 'a-nn'))}"]
            fields.append(f"agents: [{draw.choice(('bob', 'cid', 'dan', 'eve', ''))}]")
            fields.append(f"servers: [{draw.choice(('time', 'tine', ''))}]")
            fields.append(f"default: {draw.choice(('true', 'false', 'false'))}")
            front = "\n".join(fields)
        else:
            front = path.read_text().split("---\n")[1].rpartition("\ndescription")[0]
        words = "x" * draw.randrange(3)
        lines = "# one more line\n" * draw.randrange(2)
        path.write_text(
            f"---\n{lines}{front}\ndescription: Does {words}.\n---\nBe {words} brief.\n"
        )
        (card,) = load_cards([path], environ={}).cards
        self._cards[name] = card

    def forget(self, name: str) -> None:
        del self._cards[name]


def probe(card: Card) -> Iterable[Diagnostic]:
    if card.config.description == "Does xx.":
        yield Diagnostic("FA999", f"`{card.config.name}` does too much", card.path)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_remembered_is_what_a_check_of_all_cards_finds(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    directory = Directory(tmp_path, draw)
    checks = SetChecks(SERVERS, (probe,))
    for _ in range(60):
        for name in draw.sample(NAMES, draw.randrange(3)):
            directory.edit(name, 0.8)
        if draw.random() < 0.1:
            directory.forget(draw.choice(list(directory._cards)))
        unread = ("eve",) if draw.random() < 0.1 else ()
        cards = directory.cards
        found = checks.find(cards, touched=draw.sample(NAMES, draw.randrange(2)), unread=unread)
        assert found == check_set(cards, servers=SERVERS, probes=(probe,), unread=unread)


def test_a_change_of_words_asks_only_the_card_that_changed(write_card: WriteCard) -> None:
    asked: list[str] = []

    def note(card: Card) -> Iterable[Diagnostic]:
        asked.append(card.config.name)
        return ()

    def card(name: str, words: str) -> Card:
        path = write_card(f"{name}.md", "default: false", body=words)
        (read,) = load_cards([path], environ={}).cards
        return read

    checks = SetChecks(SERVERS, (note,))
    cards = [card(name, "Be brief.") for name in NAMES]
    checks.find(cards, touched=(), unread=())
    asked.clear()
    cards[1] = card("bob", "Be long.")
    checks.find(cards, touched=(), unread=())
    checks.find(cards, touched=("dan",), unread=())
    assert asked == ["bob", "dan"]
