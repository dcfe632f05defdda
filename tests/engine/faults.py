"""`make test-faults`: kills of every type of card at every boundary, and 500 at random ones."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import repeat
from pathlib import Path

from tests.engine.fault_world import TYPES, Counts, FaultWorld


def every_boundary(world: FaultWorld) -> Counts:
    """Kill a batch of one item at each boundary of its steps, one a life, and let it end."""
    life = world.begin()
    boundaries = life.live()
    expected, effects = life.outputs(), life.effects()
    counts = Counts()
    for at in range(1, len(boundaries) + 1):
        life = world.begin()
        life.live(at)
        life.live()
        counts.add(life.counts(expected, effects))
    return counts


def cancelled(world: FaultWorld, stride: int = 1) -> Counts:
    """Cancel a batch of one item at each boundary of its steps, or at some, and resume it."""
    life = world.begin()
    boundaries = life.live()
    expected, effects = life.outputs(), life.effects()
    counts = Counts()
    for at in range(1, len(boundaries) + 1, stride):
        life = world.begin()
        life.cancel(at)
        counts.add(life.counts(expected, effects))
    return counts


def random_kills(world: FaultWorld, kills: int, chance: random.Random) -> Counts:
    """Kill batches of several items at random boundaries, again and again, until each ends."""
    life = world.begin()
    boundaries = len(life.live())
    expected, effects = life.outputs(), life.effects()
    counts = Counts()
    while counts.kills < kills:
        life = world.begin()
        while True:
            before = life.kills
            most = kills - counts.kills - life.kills
            life.live(chance.randrange(1, boundaries // 2) if most > 0 else None)
            if life.kills == before:
                break
        counts.add(life.counts(expected, effects))
    return counts


def main() -> None:
    """Run everything, and print the counts as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=500)
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    print(f"{'':<28}" + "".join(f"{name:>11}" for name in asdict(Counts())), flush=True)
    each, whole = -(-asked.kills // len(TYPES)), Counts()
    with ProcessPoolExecutor() as pool:
        for found in pool.map(_of_type, TYPES, repeat(each), repeat(asked.seed)):
            for name, counts in found.items():
                _show(name, counts)
                whole.add(counts)
    _show("all", whole)
    if whole.wrong or whole.repeated or whole.too_often:
        sys.exit("a promise was broken")


def _of_type(kind: str, kills: int, seed: int) -> dict[str, Counts]:
    """Run everything with one type of card."""
    found: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory() as directory, FaultWorld(Path(directory), kind) as world:
        found[f"{kind}, every boundary"] = every_boundary(world)
        found[f"{kind}, cancelled"] = cancelled(world)
    with (
        tempfile.TemporaryDirectory() as directory,
        FaultWorld(Path(directory), kind, items=6) as world,
    ):
        chance = random.Random(f"{seed} {kind}")
        found[f"{kind}, at random"] = random_kills(world, kills, chance)
    return found


def _show(name: str, counts: Counts) -> None:
    print(f"{name:<28}" + "".join(f"{count:>11,}" for count in asdict(counts).values()), flush=True)


if __name__ == "__main__":
    main()
