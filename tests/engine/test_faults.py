"""Batches that are killed at every boundary of every step, each time in a forked process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.fault_world import FaultWorld
from tests.engine.faults import every_boundary

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["agent", "parallel", "MAKER"])
def test_a_batch_killed_at_any_boundary_ends_as_if_it_had_not_been(
    tmp_path: Path, kind: str
) -> None:
    with FaultWorld(tmp_path, kind) as world:
        counts = every_boundary(world)
    assert counts.kills >= 20
    assert counts.results == counts.kills
    assert (counts.wrong, counts.repeated, counts.too_often) == (0, 0, 0)
    # Each kind of loss happened: a request without its answer, an effect without its record.
    assert counts.in_flight > 0
    assert counts.twice > 0
