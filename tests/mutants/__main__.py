"""Run a sample of mutants: `python -m tests.mutants [--sample N] [--seed S] [ROOM…]`.

A sample is drawn from all changes of the rooms' files, the same for the same seed and source. Each
is made in a copy of the tree, where the room's own tests are run until one fails or they take too
long: first the tests that enter the changed function, the quickest first, and then all of them.
Results are kept in `.mutants/`, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.mutants.mutation import function_line, sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.mutants.entered import Entered
    from tests.mutants.mutation import Mutation

ROOT = Path(__file__).parents[2]
ROOMS = ("agents", "cards", "prompt", "rpc", "runtime", "serve", "sessions", "steps", "workflows")
"""The rooms whose tests are judged; those that there are not are left out."""

SEED = 20_261_122
MIN_SECONDS = 60.0
_MAX_NEAREST = 300
_COPIED = ("src", "tests", "bench", "docs", "examples", "pyproject.toml", "README.md", "Makefile")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a file.

    Args:
        file: The file, below `src/fast_agent`.
        mutation: The change.
    """

    file: str
    mutation: Mutation

    @property
    def room(self) -> str:
        """The room it is in."""
        return self.file.split("/", 1)[0]

    @property
    def name(self) -> str:
        """What it is, in a line."""
        before, after = (" ".join(text.split()) for text in self._texts)
        return f"{self.file}:{self.mutation.line}: `{before}` -> `{after}`"

    @property
    def key(self) -> str:
        """What results are kept by: it changes with the line, not with others."""
        place = f"{self.file} {self.mutation.start} {self.name}"
        return sha256(place.encode()).hexdigest()[:16]

    @property
    def _texts(self) -> tuple[str, str]:
        return self.mutation.before, self.mutation.after


def draw(source: Path, rooms: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """Draw a sample."""
    texts = {
        str(path.relative_to(source)): path.read_text("utf-8")
        for room in rooms
        for path in (source / room).rglob("*.py")
    }
    found = [Mutant(file, mutation) for file, mutation in sites(texts)]
    return random.Random(seed).sample(found, min(count, len(found)))


class Runner:
    """Runs tests in a copy of the tree.

    Args:
        tree: Where the copy is made.
    """

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._source = tree / "src/fast_agent"
        self._limits: dict[str, float] = {}
        self._entered: dict[str, dict[str, Entered]] = {}
        for name in _COPIED:
            path = ROOT / name
            if path.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".venv")
                shutil.copytree(path, tree / name, ignore=ignored)
            elif path.exists():
                shutil.copy(path, tree / name)
        (tree / ".demo").symlink_to(ROOT / ".demo")
        # Each run would compile the program and the tests again.
        compileall.compile_dir(tree / "src", quiet=1)
        compileall.compile_dir(tree / "tests", quiet=1)

    def outcome(self, mutant: Mutant) -> str:
        """Return what becomes of a mutant: `killed`, `timeout`, `survived`."""
        path = self._source / mutant.file
        limit = self._limit(mutant.room)
        text = path.read_text("utf-8")
        nearest = self._nearest(mutant, text)
        original = path.with_suffix(".original")
        path.rename(original)
        path.write_text(mutant.mutation.applied(text), "utf-8")
        try:
            outcome = self._run(nearest, limit) if nearest else "survived"
            # A test may also reach the function in another process.
            return self._run([f"tests/{mutant.room}"], limit) if outcome == "survived" else outcome
        finally:
            original.replace(path)  # as old as its bytecode says

    def _limit(self, room: str) -> float:
        """Return how long the tests of a room may take; they must pass without a mutant."""
        if room not in self._limits:
            file = self._tree / f"{room}.json"
            start = time.monotonic()
            noting = {"ENTERED_SOURCE": str(self._source), "ENTERED_FILE": str(file)}
            outcome = self._run(["-p", "tests.mutants.entered", f"tests/{room}"], None, noting)
            if outcome != "survived":
                sys.exit(f"the tests of `{room}` fail without a mutant")
            taken = time.monotonic() - start
            self._entered[room] = json.loads(file.read_text("utf-8"))
            self._limits[room] = max(MIN_SECONDS, 2 * taken)  # noting what they enter takes time
            print(f"# tests/{room}: {taken:.0f} s without a mutant", flush=True)
        return self._limits[room]

    def _nearest(self, mutant: Mutant, text: str) -> list[str]:
        """Return the tests that enter the changed function, the quickest first."""
        line = function_line(text, mutant.mutation.line)
        place, tests = f"{mutant.file}:{line}", self._entered[mutant.room]
        found = [name for name, one in tests.items() if place in one["places"]]
        return sorted(found, key=lambda name: tests[name]["seconds"])[:_MAX_NEAREST]

    def _run(
        self, tests: list[str], limit: float | None, more: Mapping[str, str] | None = None
    ) -> str:
        options = ["-n0", "-x", "-q", "-p", "no:cacheprovider", "--assert=plain"]
        command = [sys.executable, "-m", "pytest", *options]
        environ = {
            **os.environ,
            "PYTHONPATH": str(self._tree / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FAST_AGENT_HOME": str(ROOT / ".demo/home"),
            **(more or {}),
        }
        process = subprocess.Popen(
            [*command, *tests],
            cwd=self._tree,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return "survived" if process.wait(limit) == 0 else "killed"
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the tests and every process they started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Results:
    """What became of mutants, kept in a file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                one: dict[str, Any] = json.loads(line)
                self._known[one["key"]] = one["outcome"]

    def of(self, mutant: Mutant) -> str | None:
        """Return what became of a mutant; None where it was not run yet."""
        return self._known.get(mutant.key)

    def add(self, mutant: Mutant, outcome: str) -> None:
        """Keep what became of a mutant."""
        self._known[mutant.key] = outcome
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            one = {"key": mutant.key, "name": mutant.name, "outcome": outcome}
            print(json.dumps(one, ensure_ascii=False), file=file)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description="Run a sample of mutants.")
    parser.add_argument("--sample", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--list", action="store_true", help="only show the sample")
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    options = parser.parse_args()
    source = ROOT / "src/fast_agent"
    rooms = options.rooms or [
        one for one in ROOMS if (source / one).is_dir() and (ROOT / "tests" / one).is_dir()
    ]
    mutants = draw(source, rooms, options.sample, options.seed)
    print(f"# {len(mutants)} mutants of {', '.join(rooms)}; seed {options.seed}", flush=True)
    if options.list:
        print("\n".join(one.name for one in mutants))
        return
    results = Results(ROOT / ".mutants" / f"{options.seed}.jsonl")
    with TemporaryDirectory() as directory:
        runner: Runner | None = None
        for mutant in mutants:
            outcome = results.of(mutant)
            if outcome is None:
                runner = runner or Runner(Path(directory))
                outcome = runner.outcome(mutant)
                results.add(mutant, outcome)
            print(f"{outcome:<9} {mutant.name}", flush=True)
    survivors = [one.name for one in mutants if results.of(one) == "survived"]
    killed = len(mutants) - len(survivors)
    print(f"\n# killed {killed} of {len(mutants)}: {killed / max(len(mutants), 1):.0%}")
    print("\n".join(f"survived  {name}" for name in survivors))


if __name__ == "__main__":
    main()
