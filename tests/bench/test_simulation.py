"""The simulation of many workers, against what is known of queues."""

from __future__ import annotations

import pytest
from bench.simulation import Cluster, simulate


def test_without_work_the_model_alone_decides() -> None:
    cluster = Cluster(workers=4, at_once=5, server_cores=1, server_seconds=1e-9,
                      worker_seconds=1e-9, model_seconds=0.5, model_spread=0.0)  # fmt: skip
    outcome = simulate(cluster, 2_000, seed=1)
    assert outcome.rate == pytest.approx(4 * 5 / (3 * 0.5), rel=0.02)
    assert outcome.server_share < 1e-6


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_a_server_that_is_always_busy_decides_by_its_cores(cores: int) -> None:
    cluster = Cluster(workers=1_000, at_once=10, server_cores=cores, server_seconds=0.014,
                      worker_seconds=0.005, model_seconds=0.05)  # fmt: skip
    outcome = simulate(cluster, 40_000, seed=2)
    assert outcome.rate == pytest.approx(cores / (3 * 0.014), rel=0.03)
    assert outcome.server_share == pytest.approx(1.0, abs=0.01)


def test_on_shared_cores_the_work_of_all_decides() -> None:
    cluster = Cluster(workers=4, at_once=10, server_cores=2, is_shared=True,
                      server_seconds=0.006, worker_seconds=0.006, model_seconds=0.05)  # fmt: skip
    assert simulate(cluster, 5_000, seed=3).rate == pytest.approx(2 / (3 * 0.012), rel=0.03)


def test_a_seed_gives_the_same_again_and_another_nearly_the_same() -> None:
    cluster = Cluster(workers=10, at_once=10, server_cores=4, server_seconds=0.014,
                      worker_seconds=0.007, model_seconds=1.0)  # fmt: skip
    first, again, other = (simulate(cluster, 4_000, seed=seed) for seed in (4, 4, 5))
    assert first == again
    assert other.rate == pytest.approx(first.rate, rel=0.05)
