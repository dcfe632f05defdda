from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from bench.__main__ import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_every_family_is_described_in_the_order_of_the_table() -> None:
    rows = PAGE.read_text("utf-8").partition("| family |")[2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)) == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_figures(family: str) -> None:
    assert callable(import_module(f"bench.{family}").figures)
