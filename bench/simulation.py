"""A simulation of many workers at one server: how many runs a second, and how long steps wait."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from math import exp, log
from typing import Final

_SPREAD: Final = 0.5
"""The sigma of the logarithm of service times and of the latency of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What is simulated.

    Args:
        workers: How many workers there are.
        at_once: How many runs are open for each worker.
        server_cores: How many cores the server has.
        is_shared: Whether the workers have no core but those of the server.
        steps: Steps of a run.
        server_seconds: Processor time of the server for a step, on average.
        worker_seconds: Processor time of workers and client for a step, on average.
        model_seconds: What the model takes for a step, as a median; log-normal.
        model_spread: The sigma of its logarithm; 0 for a model that always takes the same.
    """

    workers: int
    at_once: int
    server_cores: int
    is_shared: bool = False
    steps: int = 3
    server_seconds: float
    worker_seconds: float
    model_seconds: float
    model_spread: float = _SPREAD


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Args:
        rate: Runs a second.
        server_share: The part of its cores that the server was busy.
        step_seconds: What a step took without the model, at the 95th percentile.
    """

    rate: float
    server_share: float
    step_seconds: float


class _Cores:
    """Cores that serve in the order of arrival.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count
        self.busy = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Return when a service ends that is asked for now."""
        end = max(now, self._free[0]) + seconds
        heapq.heapreplace(self._free, end)
        self.busy += seconds
        return end


def simulate(cluster: Cluster, runs: int, seed: int) -> Outcome:
    """Let runs pass through a cluster; each that ends is followed by another.

    A step takes the server first, then its worker, then the model.

    Args:
        cluster: What it consists of.
        runs: How many end, of which the later half counts.
        seed: Decides service times and latencies.
    """
    chance = random.Random(seed)
    server = _Cores(cluster.server_cores)
    workers = [server if cluster.is_shared else _Cores(1) for _ in range(cluster.workers)]
    asked = [0.0] * (cluster.workers * cluster.at_once)
    events = [(0.0, slot, False) for slot in range(len(asked))]
    total = runs * cluster.steps
    half, busy, waits = 0.0, 0.0, list[float]()
    while True:
        now, slot, is_served = heapq.heappop(events)
        if not is_served:
            asked[slot] = now
            end = server.serve(now, _drawn(chance, cluster.server_seconds))
            heapq.heappush(events, (end, slot, True))
            continue
        worker = workers[slot % cluster.workers]
        end = worker.serve(now, _drawn(chance, cluster.worker_seconds))
        waits.append(end - asked[slot])
        if len(waits) == total // 2:
            half, busy = now, server.busy
        elif len(waits) == total:
            break
        latency = cluster.model_seconds * exp(chance.gauss(0.0, cluster.model_spread))
        heapq.heappush(events, (end + latency, slot, False))
    taken, counted = now - half, waits[total // 2 :]
    return Outcome(
        len(counted) / cluster.steps / taken,
        (server.busy - busy) / taken / cluster.server_cores,
        sorted(counted)[int(len(counted) * 0.95)],
    )


def _drawn(chance: random.Random, mean: float) -> float:
    """Draw a service time."""
    if mean <= 0.0:
        return 0.0
    return exp(chance.gauss(log(mean) - _SPREAD**2 / 2, _SPREAD))
