"""Several workers at one Temporal server, measured up to four and simulated up to a thousand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tests.temporal_server import TemporalServer, why_not

from bench.figure import Figure, Goal
from bench.process import BenchError
from bench.samples import Samples
from bench.simulation import Cluster, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bench.setup import Setup

_WORKERS: Final = (1, 2, 4)
_AT_ONCE: Final = 10
_MODEL_SECONDS: Final = 0.05
_SEED: Final = 2026
_SERVER_CORES: Final = 16
"""The server of the simulation: with the workers of the measurement it has the cores of here."""

_LATENCY: Final = 2.0
"""What a model takes in the simulation, as a median in seconds."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure few workers, hold the simulation against them, and simulate many."""
    reason = why_not()
    if reason is not None:
        raise BenchError(reason)
    runs = 60 if setup.quick else 300
    measured = {count: _measured(setup, count, runs) for count in _WORKERS}
    one = measured[_WORKERS[0]]
    for count in _WORKERS:
        found = measured[count]
        name = f"{count} worker{'' if count == 1 else 's'} of {_AT_ONCE} runs on these cores"
        yield _figure(f"{name}", "/s", found["rate"])
        reported = simulate(_here(count, one), 2_000, _SEED)
        ratio = found["rate"] / reported.rate
        yield _figure(f"{name}: rate to the simulated one", "x", ratio, Goal(0.8, at_least=True))
        if count > 1:
            ratio = _work(found) / _work(one)
            goal = Goal(1.2)
            yield _figure(f"{name}: processor time of a run to one worker's", "x", ratio, goal)
    for count in (10, 100, 1_000):
        reported = simulate(_elsewhere(count, one), max(4_000, 40 * count), _SEED)
        name = f"{count:,} workers and a server of {_SERVER_CORES} cores, simulated"
        yield _figure(f"{name}: runs of three steps", "/s", reported.rate)
        yield _figure(f"{name}: the server is busy", "%", reported.server_share * 100)
        yield _figure(f"{name}: a step beside its model, 95 of 100", "s", reported.step_seconds)


def _measured(setup: Setup, workers: int, runs: int) -> Mapping[str, float]:
    with TemporalServer(in_memory=True) as server:
        place = setup.work / f"workers-{workers}"
        return setup.ours("temporal_workers.py", server.address, place, workers, runs, server.pid)


def _work(found: Mapping[str, float]) -> float:
    return found["server"] + found["workers"]


def _here(workers: int, one: Mapping[str, float]) -> Cluster:
    """Return the cluster that is measured: everything shares the cores of this machine."""
    return Cluster(
        workers=workers,
        at_once=_AT_ONCE,
        server_cores=os.cpu_count() or 1,
        is_shared=True,
        steps=1,
        server_seconds=one["server"] / 1e3,
        worker_seconds=one["workers"] / 1e3,
        model_seconds=_MODEL_SECONDS,
        model_spread=0.0,
    )


def _elsewhere(workers: int, one: Mapping[str, float]) -> Cluster:
    """Return a cluster in which every worker has a core, and the server a machine."""
    return Cluster(
        workers=workers,
        at_once=_AT_ONCE,
        server_cores=_SERVER_CORES,
        server_seconds=one["server"] / 1e3,
        worker_seconds=one["workers"] / 1e3,
        model_seconds=_LATENCY,
    )


def _figure(name: str, unit: str, value: float, goal: Goal | None = None) -> Figure:
    return Figure(name=name, unit=unit, ours=Samples((value,)), goal=goal)
