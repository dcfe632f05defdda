"""MAKER: votes against theory, the k of the paper, and a million steps through being killed."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from bench.comparison import by_name
from bench.figure import Figure, Goal
from bench.process import BenchError, run_json
from bench.samples import Samples
from bench.setup import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.setup import Setup

ROUNDS = 5
RUNS, QUICK_RUNS = 3_000, 300
VOTES, QUICK_VOTES = 2_000, 200
DISKS, QUICK_DISKS = 20, 14
HANOI = ROOT / "examples" / "hanoi" / "hanoi.py"
PAPER = (
    (0.3571, 29),
    (0.0040, 4),
    (0.0022, 3),
    (0.0018, 3),
    (0.1839, 12),
    (0.0358, 6),
    (0.2342, 15),
    (0.0569, 6),
    (0.0393, 6),
)
"""Error rates of the models of the paper's table, and their k (arXiv 2511.09030, section 4.3)."""
PAPER_STEPS, PAPER_TARGET = 2**20 - 1, 0.95
Z99 = 2.5758293035489004
"""Standard deviations around the middle of a normal distribution that hold 99 % of it."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure votes, then play the towers whole and killed."""
    yield _paper_rows(setup)
    yield from _theory(setup)
    yield from _whole_votes(setup)
    yield from _towers(setup)


def _paper_rows(setup: Setup) -> Figure:
    exact = 0
    for error, k in PAPER:
        arguments = ("--p", 1 - error, "--steps", PAPER_STEPS, "--target", PAPER_TARGET)
        run = setup.run(setup.program, "maker", "plan", *map(str, arguments), "--format", "json")
        exact += json.loads(run.output)["k"] == k
    return _figure("k of the nine models of the MAKER paper, exact", "", exact, Goal(9, True))


def _theory(setup: Setup) -> Iterator[Figure]:
    """Count the votes whose outcomes lie where theory has 99 % of them."""
    runs = QUICK_RUNS if setup.quick else RUNS
    cells: list[dict[str, Any]] = setup.ours("votes.py", runs)["cells"]
    success = sum(map(_success_fits, cells))
    draws = sum(map(_draws_fit, cells))
    name = f"of 12 kinds of votes, {runs:,} each, within 99 % of theory"
    yield _figure(f"{name}: success", "", success, Goal(12, at_least=True))
    yield _figure(f"{name}: draws", "", draws, Goal(12, at_least=True))


def _success_fits(cell: Mapping[str, Any]) -> bool:
    """Whether so many wins are no surprise, by the binomial distribution itself."""
    p, k, runs, won = cell["p"], cell["k"], cell["runs"], cell["won"]
    lost = 1 - 1 / (1 + ((1 - p) / p) ** k)
    return min(_tail(runs, lost, runs - won), _tail(runs, 1 - lost, won)) > 0.005


def _tail(trials: int, share: float, hits: int) -> float:
    """Return the probability of at most so many hits."""
    log_odds = math.log(share) - math.log1p(-share)
    log_term = trials * math.log1p(-share)
    total = 0.0
    for number in range(hits + 1):
        total += math.exp(log_term)
        log_term += log_odds + math.log((trials - number) / (number + 1) or 1)
    return total


def _draws_fit(cell: Mapping[str, Any]) -> bool:
    """Whether the mean number of draws is not a surprise, by its standard error."""
    p, k, runs = cell["p"], cell["k"], cell["runs"]
    r = ((1 - p) / p) ** k
    theory = k / (2 * p - 1) * (1 - r) / (1 + r)
    mean = cell["draws"] / runs
    spread = math.sqrt((cell["squares"] / runs - mean**2) / (runs - 1))
    return abs(mean - theory) <= Z99 * spread


def _whole_votes(setup: Setup) -> Iterator[Figure]:
    count = QUICK_VOTES if setup.quick else VOTES
    values = by_name([setup.ours("vote_turn.py", count) for _ in range(setup.rounds(ROUNDS))])
    yield Figure(name="votes of a card of k 3", unit="/s", ours=values["votes"])
    yield Figure(name="draws of these votes, turns of clones", unit="/s", ours=values["draws"])


def _towers(setup: Setup) -> Iterator[Figure]:
    disks = QUICK_DISKS if setup.quick else DISKS
    task = ("--disks", disks, "--p", 0.9978, "--k", 3)
    # Both write checkpoints.
    whole = _play(setup, task, setup.work / "whole.json")
    kept = setup.work / "killed.json"
    for share in (0.3, 0.6):
        _kill(setup, task, kept, share * whole["steps"])
    resumed = _play(setup, task, kept)
    same = all(whole[fact] == resumed[fact] for fact in ("steps", "draws", "errors", "digest"))
    name = f"Hanoi by votes, {disks} disks, {whole['steps']:,} steps"
    yield _figure(f"{name}: wrong moves", "", whole["errors"], Goal(0))
    speed = Goal(20_000, at_least=True)
    yield _figure(f"{name}: draws", "/s", whole["draws_per_second"], speed)
    worked = whole["draws_per_processor_second"]
    yield _figure(f"{name}: draws by processor time", "/s", worked, speed)
    start, end = whole["memory_mib"]
    yield _figure(f"{name}: memory at the end to that at the start", "x", end / start, Goal(1.1))
    ended = int(same and resumed["resumed_at"] >= 0.6 * whole["steps"])
    yield _figure(f"{name}: same result after two kill -9", "", ended, Goal(1, at_least=True))


def _play(setup: Setup, task: Sequence[object], kept: Path) -> dict[str, Any]:
    command = (setup.python, HANOI, *map(str, task), "--checkpoint", kept)
    return run_json(command, cwd=setup.work, environ=setup.environ, timeout=3600)


def _kill(setup: Setup, task: Sequence[object], kept: Path, least: float) -> None:
    """Start a run and kill it after its checkpoint of at least this step.

    Raises:
        BenchError: It ended before.
    """
    command = (setup.python, HANOI, *map(str, task), "--checkpoint", kept)
    with subprocess.Popen(command, cwd=setup.work, env=setup.environ) as process:
        while not kept.exists() or json.loads(kept.read_bytes())["reached"]["step"] < least:
            if process.poll() is not None:
                raise BenchError("the run of Hanoi ended before it was killed")
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)


def _figure(name: str, unit: str, value: float, goal: Goal) -> Figure:
    return Figure(name=name, unit=unit, ours=Samples.of([value]), goal=goal)
