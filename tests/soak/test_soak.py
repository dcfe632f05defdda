"""A short soak: the same editors, clients and checks for some seconds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tests.soak.growth import growth_of
from tests.soak.report import render
from tests.soak.soak import Plan, Soak

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.anyio
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes below /proc")
@pytest.mark.spec("SOAK-1", "SOAK-2", "SOAK-3", "SOAK-4")
async def test_nothing_gives_way_to_random_editors_and_clients(tmp_path: Path) -> None:
    needs = ("edits", "calls of the pair", "messages found again", "changes that were told")
    plan = Plan(seconds=9, seed=11, round_seconds=3, visitors=1, settles_in=120, needs=needs)
    soak = Soak(tmp_path, plan)
    settling = await soak.run()
    assert not soak.findings.violations, render(soak, settling)
    done = soak.findings.counts
    for what in needs:
        assert done[what] > 0, what


def test_growth_is_that_of_a_line_after_the_warm_up() -> None:
    samples = [(0.0, 900.0), (10.0, 500.0), (25.0, 100.0), (50.0, 150.0), (100.0, 250.0)]
    growth = growth_of(samples)
    assert (growth.samples, round(growth.level), round(growth.gain)) == (3, 100, 150)
    assert growth.per_minute == pytest.approx(120)
    assert growth_of([]).per_minute == growth_of([(5.0, 7.0)]).gain == 0
