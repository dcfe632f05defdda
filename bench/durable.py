"""Durable runs: what a step costs, how processes share the work, and how a long run is resumed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError
from bench.setup import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 5
PROCESSES = {1: 0.9, 2: 0.8, 4: 0.65}
"""How many processes work at once, and the part of the ideal rate that each should have."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure steps and runs in processor time, queues and a resume by the clock.

    The limit of a step and of a run is what SQLite takes for their statements alone.
    """
    work = setup.work / "durable"
    work.mkdir(exist_ok=True)
    steps, items, runs = (500, 10_000, 40) if setup.quick else (5_000, 100_000, 200)

    def ours() -> Values:
        small = setup.ours("durable.py", "small", work, steps)
        values = {
            "step": small["step"] * 1e3,
            "run": small["run"] * 1e3,
            "memory": small["memory"],
            "queue": setup.ours("durable.py", "queue", work, items)["queue"],
            "resume": setup.ours("durable.py", "resume", work, 2 * steps)["resume"],
        }
        for count in PROCESSES:
            ratio, used = _shared(setup, count, runs)
            values[f"ratio {count}"], values[f"work {count}"] = ratio, used * 1e3
        return values

    def limit() -> Values:
        bare = setup.ours("bare_sqlite.py", work, steps)
        return {name: value * 1e3 for name, value in bare.items()}

    done = compare(setup, ours, limit=limit, rounds=ROUNDS)
    yield done.figure("step", "a durable step, in processor time", "ms", Goal(0.10))
    yield done.figure("run", "a durable run of three steps, in processor time", "ms", Goal(0.8))
    yield done.figure("memory", "memory over 1,000 items of a batch", "MB", Goal(60.0))
    yield done.figure("queue", f"{items:,} items queued", "s", Goal(3.0))
    yield done.figure("resume", f"a run of {2 * steps:,} steps resumed", "s", Goal(1.5))
    for count, least in PROCESSES.items():
        name = f"{count} process{'' if count == 1 else 'es'}, each 10 runs at once of 50 ms"
        yield done.figure(f"ratio {count}", f"{name}: rate to the ideal", "x",
                          Goal(least, at_least=True))  # fmt: skip
        yield done.figure(f"work {count}", f"{name}: processor time of a run", "ms", Goal(0.8))


def _shared(setup: Setup, count: int, runs: int) -> tuple[float, float]:
    """Run as many processes at once; return their mean rate to the ideal and work of a run."""
    script, work = HERE / "ours/durable.py", setup.work / "durable"
    processes = [
        subprocess.Popen(
            [setup.python, "-P", script, "worker", work, str(runs), f"worker{number}"],
            cwd=setup.work,
            env=dict(setup.environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise BenchError("a worker did not start")
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        values = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return (
        sum(value["ratio"] for value in values) / count,
        sum(value["work"] for value in values) / count,
    )
