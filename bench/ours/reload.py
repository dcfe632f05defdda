"""Passes over a directory of cards that is loaded: nothing changed, one card changed."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from fast_agent.app import FastAgent


def main(directory: str, rounds: int) -> None:
    cards = Path(directory)
    program = FastAgent(cwd=cards.parent, environ={})
    count = len(program.load(cards=[cards]))
    changed = sorted(cards.glob("*.md"))[count // 3]
    text = changed.read_text(encoding="utf-8")
    idle: list[float] = []
    one: list[float] = []
    limit: list[float] = []
    for number in range(rounds):
        limit.append(_seconds(lambda: _look(directory)))
        begun = time.perf_counter()
        done = program.reload()
        idle.append(time.perf_counter() - begun)
        if done.changed:
            sys.exit("an idle pass changed something")
        changed.write_text(f"{text}\nRound {number}.\n", encoding="utf-8")
        begun = time.perf_counter()
        done = program.reload()
        one.append(time.perf_counter() - begun)
        if len(done.updated) != 1:
            sys.exit(f"{len(done.updated)} agents changed instead of one")
    print(
        json.dumps(
            {
                "cards": count,
                "idle": statistics.median(idle),
                "one": statistics.median(one),
                "limit": statistics.median(limit),
            }
        )
    )


def _look(directory: str) -> None:
    """The least a pass can do: list the directory and ask for the state of each file."""
    with os.scandir(directory) as entries:
        for entry in entries:
            entry.stat()


def _seconds(act: object) -> float:
    assert callable(act)
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


main(sys.argv[1], int(sys.argv[2]))
