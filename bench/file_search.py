"""How long an agent's search of many files takes, beside ripgrep where it is on `PATH`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from functools import partial
from random import Random
from shutil import which
from typing import TYPE_CHECKING

from bench.figure import Figure, Goal
from bench.process import BenchError
from bench.samples import Samples, interleave
from fast_agent.tools.files.lookup import search_files
from fast_agent.tools.files.tree import walk
from fast_agent.tools.files.workspace import Workspace
from fast_agent.tui.input.workspace_files import FileIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.setup import Setup
    from fast_agent.text.json_value import JsonObject

FOLDERS = 1000
FILES_OF_FOLDER = 100
ROUNDS = 5
PATTERNS = {"a word": "needle", "an expression": r"needle_\w+ \d+"}
LETTERS = ("a1b", "b7f9py", "33")
_WORDS = ("alpha", "beta", "gamma", "import", "return", "value", "class")


def figures(setup: Setup) -> Iterator[Figure]:
    """Search 100,000 files for what some of them hold."""
    folders = FOLDERS // 20 if setup.quick else FOLDERS
    root = _tree(setup.work / "searched", folders)
    count = folders * FILES_OF_FOLDER
    for name, pattern in PATTERNS.items():
        found: list[int] = []
        measures = {"ours": partial(_ours, root, pattern, found)}
        if which("rg") is not None:
            measures["ripgrep"] = partial(_ripgrep, root, pattern, found)
        processor: dict[str, list[float]] = {one: [] for one in measures}
        values = interleave(
            {one: partial(_timed, processor[one], work) for one, work in measures.items()},
            rounds=ROUNDS,
        )
        if len(set(found)) != 1:
            raise BenchError(f"the searches found {sorted(set(found))} lines")
        limit = Samples.of(values["ripgrep"]) if "ripgrep" in values else None
        ours = Samples.of(values["ours"])
        title = f"`grep` of {count:,} files for {name}; least: ripgrep"
        yield Figure(name=title, unit="ms", ours=ours, limit=limit)
        if limit is not None:
            pairs = zip(processor["ours"], processor["ripgrep"], strict=True)
            ratios = Samples.of([mine / its for mine, its in pairs])
            title = "processor time of the same, times ripgrep's"
            yield Figure(name=title, unit="x", ours=ratios, goal=Goal(1.5))
    index = FileIndex(f"{one.path}/{name}" for one in walk(str(root), "", everything=False)
                      for name in one.files)  # fmt: skip
    values = interleave({one: partial(_completions, index, one) for one in LETTERS}, rounds=ROUNDS)
    slowest = max((Samples.of(values[one]) for one in LETTERS), key=lambda one: one.median)
    title = f"files that `@` offers by letters, among {count:,}"
    yield Figure(name=title, unit="ms", ours=slowest, goal=Goal(100.0))


def _timed(processor: list[float], work: Callable[[], float]) -> float:
    """Return what a search took by the clock, and note its processor time, threads and children."""
    before = os.times()
    took = work()
    processor.append(sum(os.times()[:4]) - sum(before[:4]))
    return took


def _completions(index: FileIndex, letters: str) -> float:
    start = time.perf_counter()
    found = index.completions(letters)
    took = (time.perf_counter() - start) * 1000
    if not found:
        raise BenchError(f"no file has the letters {letters!r}")
    return took


def _tree(root: Path, folders: int) -> Path:
    random = Random(7)
    for number in range(folders):
        folder = root / f"a{number % 40}" / f"b{number}"
        folder.mkdir(parents=True)
        for file in range(FILES_OF_FOLDER):
            lines = [" ".join(random.choices(_WORDS, k=8)) for _ in range(30)]
            if random.random() < 0.01:
                lines[random.randrange(30)] += f" needle_{number} {file}"
            (folder / f"f{file}.py").write_text("\n".join(lines))
    return root


def _ours(root: Path, pattern: str, found: list[int]) -> float:
    reported: JsonObject = {
        "pattern": pattern,
        "ignore_case": False,
        "context": 0,
        "only": "content",
        "everything": False,
        "glob": None,
    }

    async def search() -> str:
        return await search_files(Workspace(root).resolve("."), reported, most=1_000_000)

    start = time.perf_counter()
    text = asyncio.run(search())
    found.append(text.count("\n") + 1)
    return (time.perf_counter() - start) * 1000


def _ripgrep(root: Path, pattern: str, found: list[int]) -> float:
    command = ["rg", "--no-config", "--no-require-git", "--no-heading", "-n", "-e", pattern, "."]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    took = (time.perf_counter() - start) * 1000
    found.append(done.stdout.count(b"\n"))
    return took
