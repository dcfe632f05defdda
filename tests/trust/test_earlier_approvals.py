"""Earlier approvals: entries of card files still cover what they covered, and nothing more."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.load import load_cards
from fast_agent.trust.earlier_approvals import EarlierApprovals, fingerprint_of
from fast_agent.trust.effect import Effect, Holder

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.trust.effect import EffectKind

CARD = """\
---
name: ann
model: passthrough
function_tools: [tools.py:add]
mcp_connect: ["{python} server.py"]
shell: true
---
Help.
"""


def effect(kind: EffectKind, name: str = "ann") -> Effect:
    return Effect(kind, "x", Holder("card", name), "ann.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "cards"
    folder.mkdir()
    (folder / "ann.md").write_text(CARD.replace("{python}", sys.executable))
    (folder / "tools.py").write_text("def add() -> int:\n    return 1\n")
    (folder / "server.py").write_text("print(1)\n")
    return folder


def cards(folder: Path) -> tuple[Card, ...]:
    return tuple(load_cards([folder], environ={}, cwd=folder.parent).cards)


def approve(home: Path, folder: Path) -> EarlierApprovals:
    """Write the file as the earlier version did."""
    home.mkdir(exist_ok=True)
    entry = {"fingerprint": fingerprint_of(cards(folder), folder.parent), "files": ["x"]}
    facts = {str(folder / "ann.md"): entry}
    (home / "card-approvals.json").write_text(json.dumps(facts))
    return EarlierApprovals(home)


@pytest.mark.spec("TR-M1.1")
def test_an_entry_covers_what_its_card_runs_and_nothing_else(tmp_path: Path, folder: Path) -> None:
    earlier = approve(tmp_path / "home", folder)
    effects = [effect("run"), effect("send"), effect("connect"), effect("run", "bob")]
    assert earlier.covered(effects, cards(folder), folder.parent) == {effects[0]}


@pytest.mark.spec("TR-M1.1")
@pytest.mark.parametrize("name", ["ann.md", "tools.py", "server.py", "more.py"])
def test_an_entry_that_no_longer_fits_covers_nothing(
    tmp_path: Path, folder: Path, name: str
) -> None:
    earlier = approve(tmp_path / "home", folder)
    with (folder / name).open("a") as file:
        file.write("\n# other\n")
    assert earlier.covered([effect("run")], cards(folder), folder.parent) == frozenset()


@pytest.mark.spec("TR-M1.2")
def test_only_revoking_changes_the_file(tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    earlier = approve(home, folder)
    before = (home / "card-approvals.json").read_bytes()
    earlier.covered([effect("run")], cards(folder), folder.parent)
    assert earlier.revoke([str(folder / "other.md")]) == ()
    assert (home / "card-approvals.json").read_bytes() == before
    assert earlier.revoke([str(folder)]) == (str(folder / "ann.md"),)
    assert not earlier
    assert not EarlierApprovals(home)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"/a": 1}', '{"/a": {"fingerprint": 1}}', "[" * 99_999]
)
def test_a_damaged_file_covers_nothing(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "card-approvals.json").write_text(text)
    with caplog.at_level(logging.WARNING):
        assert not EarlierApprovals(tmp_path)
    assert "no card counts as approved" in caplog.text


def test_a_home_that_is_not_ones_own_covers_nothing(tmp_path: Path, folder: Path) -> None:
    approve(tmp_path / "home", folder)
    assert not EarlierApprovals(tmp_path / "home", readable=False)
    assert not EarlierApprovals(tmp_path / "nowhere")
