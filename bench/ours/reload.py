"""Passes over a directory of cards that is loaded: nothing changed, one card changed."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.card_directory import SERVERS
from bench.directory_look import look

from fast_agent.app import FastAgent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


class Times:
    """Times of passes by kind, on the clock and on the processor."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def of(self, kind: str, act: Callable[[], T]) -> T:
        clock, cpu = time.perf_counter(), time.process_time()
        result = act()
        self._add(kind, time.perf_counter() - clock)
        self._add(f"{kind}_cpu", time.process_time() - cpu)
        return result

    def medians(self) -> dict[str, float]:
        return {kind: statistics.median(values) for kind, values in self._seconds.items()}

    def _add(self, kind: str, seconds: float) -> None:
        self._seconds.setdefault(kind, []).append(seconds)


def main(directory: str, rounds: int) -> None:
    cards = Path(directory)
    program = FastAgent(cwd=cards.parent, environ={}, ignore_config=True)
    for name in SERVERS:  # given by the program, they need no approval
        program.server(name, command=f"server-{name}")
    count = len(program.load(cards=[cards]))
    changed = sorted(cards.glob("*.md"))[count // 3]
    text = changed.read_text(encoding="utf-8")
    times = Times()
    for number in range(rounds):
        times.of("limit", lambda: look(directory))
        if times.of("idle", program.reload).changed:
            sys.exit("an idle pass changed something")
        changed.write_text(f"{text}\nRound {number}.\n", encoding="utf-8")
        done = times.of("one", program.reload)
        if len(done.updated) != 1:
            sys.exit(f"{len(done.updated)} agents changed instead of one")
    changed.write_text(text, encoding="utf-8")
    print(json.dumps({"cards": count, **times.medians()}))


main(sys.argv[1], int(sys.argv[2]))
