from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load import load_cards
from fast_agent.runtime.card_probes import history_probe
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("CARD-15", "CARD-50", "SET-6")
def test_problems_stand_in_the_card_or_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/good.md").write_text("---USER\nhi\n---ASSISTANT\nhello\n")
    (tmp_path / "cards/bad.json").write_text('{"messages": [\n{"role": "bot", "content": []}]}')
    text = "---\nname: me\nmessages: [good.md, gone.md, bad.json]\n---\nBe brief.\n"
    (tmp_path / "cards/me.md").write_text(text)
    (card,) = load_cards(["cards/me.md"]).cards
    gone, bad = history_probe(card)
    assert (gone.code, gone.path, gone.span) == ("FA401", "cards/me.md", Span.at(3, 21, 7))
    assert gone.message == "history `cards/gone.md` cannot be read: no such file or directory"
    assert gone.source_line == "messages: [good.md, gone.md, bad.json]"
    assert (bad.code, bad.path, bad.span) == ("FA404", "cards/bad.json", Span.at(2, 10, 5))


def test_a_single_name(tmp_path: Path) -> None:
    path = tmp_path / "me.md"
    path.write_text("---\nmessages: gone.md\n---\nBe brief.\n")
    (card,) = load_cards([str(path)]).cards
    (gone,) = history_probe(card)
    assert (gone.path, gone.span) == (str(path), Span.at(2, 11, 7))


def test_nothing_to_read() -> None:
    assert list(history_probe(Card(AgentConfig(name="me", messages=("x.md",))))) == []
