from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench import __main__
from bench.__main__ import FAMILIES
from bench.card_directory import write_cards
from bench.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.figure import Figure

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_every_family_is_described_in_the_order_of_the_table() -> None:
    rows = PAGE.read_text("utf-8").partition("| family |")[2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_figures(family: str) -> None:
    assert callable(import_module(f"bench.{family}").figures)


def test_families_find_nothing_that_another_one_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Path]] = []

    def figures(setup: Setup) -> Iterator[Figure]:
        found.append(list(setup.work.iterdir()))
        (setup.work / "fastagent.config.yaml").touch()
        yield from ()

    monkeypatch.setattr(import_module("bench.turn"), "figures", figures)
    monkeypatch.setattr(import_module("bench.tool"), "figures", figures)
    assert __main__.main(["--only", "turn", "tool"]) == 0
    assert found == [[], []]


def test_all_cards_of_the_reload_pass_are_loaded(tmp_path: Path) -> None:
    """Those with servers of a found configuration would wait for an approval."""
    setup = Setup(tmp_path, quick=True)
    assert setup.ours("reload.py", write_cards(tmp_path / "reload", 60), 1)["cards"] == 60


def test_the_examples_run_in_the_replays(tmp_path: Path) -> None:
    done = Setup(tmp_path, quick=True).ours("replay.py", 8)
    assert (done["same"], done["opened"]) == (8, 0)
