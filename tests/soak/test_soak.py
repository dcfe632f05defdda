"""A short soak: the same editors, clients and checks for some seconds."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.soak.findings import Findings
from tests.soak.growth import growth_of
from tests.soak.heap_state import HeapState
from tests.soak.process_state import ProcessState
from tests.soak.report import check_growth, render
from tests.soak.soak import Plan, Soak

if TYPE_CHECKING:
    from pathlib import Path

    from tests.soak.settled import Settling


@pytest.mark.anyio
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes below /proc")
@pytest.mark.spec("SOAK-1", "SOAK-2", "SOAK-3", "SOAK-4")
async def test_nothing_gives_way_to_random_editors_and_clients(tmp_path: Path) -> None:
    needs = ("edits", "calls of the pair", "messages found again", "changes that were notified")
    plan = Plan(seconds=9, seed=11, round_seconds=3, visitors=1, settles_in=120, needs=needs)
    soak = Soak(tmp_path, plan)
    settling = await soak.run()
    assert not soak.findings.violations, render(soak, settling)
    done = soak.findings.counts
    for what in needs:
        assert done[what] > 0, what
    for served in settling.served:
        heaps = [heap for _, heap in settling.heaps[served.name]]
        assert all(heap.blocks > 100_000 and heap.allocated > 1_000 for heap in heaps), heaps
    assert settling.said["http, shared"] > 2 * done["messages found again"]


def test_growth_is_that_of_a_line_after_the_warm_up() -> None:
    samples = [(0.0, 900.0), (10.0, 500.0), (25.0, 100.0), (50.0, 150.0), (100.0, 250.0)]
    growth = growth_of(samples)
    assert (growth.samples, round(growth.level), round(growth.gain)) == (3, 100, 150)
    assert growth.per_minute == pytest.approx(120)
    assert growth_of([]).per_minute == growth_of([(5.0, 7.0)]).gain == 0


def grown(kib: float, blocks: float, *, messages: int = 0) -> list[str]:
    """Judge a server of half an hour that gained so much after the warm-up."""
    times = [1800.0 * part / 40 for part in range(41)]

    def at(time: float, first: float, gain: float) -> float:
        return first + gain * max(0.0, (time - 450) / 1350)

    one = SimpleNamespace(name="it", conversations=0)
    settling = SimpleNamespace(
        served=(one,),
        said={"it": messages},
        samples={"it": [(t, ProcessState(at(t, 90_000, kib), 9, 9, 1, 1.0)) for t in times]},
        heaps={"it": [(t, HeapState(int(at(t, 4e5, blocks)), at(t, 18_000, kib))) for t in times]},
    )
    findings = Findings(lambda: 0.0)
    check_growth(findings, cast("Settling", settling))
    return [violation.split(": ")[1].split()[0] for violation in findings.violations]


def test_a_leak_of_a_kibibyte_a_visit_shows_and_what_is_remembered_is_none() -> None:
    visits = 1_600  # a server's, after the warm-up
    assert grown(0, 0) == []
    assert grown(1.0 * visits, 1 * visits) == ["allocated"]
    assert grown(0, 4 * visits) == ["blocks"]
    assert grown(0.2 * 9 * visits, 6 * 9 * visits, messages=12 * visits) == []
    assert grown((0.2 * 9 + 1.7) * visits, 0, messages=12 * visits) == ["allocated"]
    assert grown(20_000, 0) == ["memory", "allocated"]
