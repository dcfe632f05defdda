"""The cards of a project nobody named: their effects, compared with what was approved."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS, PAIRS = 3, 9
CARDS = 1_000
GOAL = 30
KINDS = {"without effects": "", "with shell and server": "shell: true\nservers: [docs]\n"}

_BODY = "Answer questions about invoices, letters and orders. Name the source of every fact.\n" * 8
_CONFIG = "mcp:\n  servers:\n    docs: {command: cat, args: [--quiet]}\n"


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure what it takes more to load cards as found and approved than as given."""
    for kind, fields in KINDS.items():
        desk = project(setup.work / kind.replace(" ", "-") / "desk", fields)
        done = compare(setup, partial(_load, setup, desk), rounds=ROUNDS)
        title = f"{CARDS:,} approved cards {kind}"
        yield done.figure("given", f"{title}: load them as given", "ms")
        yield done.figure("more", "what the gate adds where they were found", "ms", Goal(GOAL))


def project(desk: Path, fields: str) -> Path:
    """Write a project with 1,000 cards of some fields, and the server they name."""
    cards = desk / ".fast-agent" / "agent-cards"
    cards.mkdir(parents=True)
    (desk / "fastagent.config.yaml").write_text(_CONFIG, encoding="utf-8")
    for number in range(CARDS):
        name = f"agent-{number:04}"
        front = f"name: {name}\ndescription: Agent {number}.\nmodel: passthrough\n{fields}"
        (cards / f"{name}.md").write_text(f"---\n{front}---\n\n{_BODY}", encoding="utf-8")
    return desk


def _load(setup: Setup, desk: Path) -> Values:
    answer = setup.ours("trust.py", desk, PAIRS)
    if answer["cards"] != CARDS:
        raise BenchError(f"{answer['cards']} of {CARDS} cards were loaded")
    return {name: answer[name] * 1e3 for name in ("given", "more")}
