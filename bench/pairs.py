"""Pairs: figures of this tree beside those of another commit, A B A B, in processor time.

`python -m bench.pairs --against COMMIT [FAMILY…]`. The other commit is checked out in a git
worktree that is thrown away. Both run with the packages installed here, each with its own source.
Without a family, the figures of `MEASURES` are compared; a family is run whole on either
side, by the benchmark of that side, and each of its figures is compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.figure import Figure, Goal
from bench.http_client import HttpServer, free_port, time_calls
from bench.process import BenchError, run_process
from bench.samples import Samples, interleave
from bench.setup import ROOT, Setup
from bench.stdio_client import StdioClient
from bench.table import number
from bench.trust import CARDS, KINDS, project

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    Values = Mapping[str, float]
    Measure = Callable[[Setup, "Side"], Values]

AGAINST: Final = "4186adf"
"""The commit that `make bench` compares with."""

PAIRS: Final = 20
WORST: Final = 0.95
"""How much of the other commit's speed is to be kept."""

_CALLS, _READS, _STARTS = 2_000, 10_000, 3
_URI = "internal://fast-agent/models"
_CARD = "---\ntype: agent\nname: ann\nmodel: passthrough\n---\nSay it back.\n"
_PROGRAM = "from fast_agent.cli.main import main\nmain()\n"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two trees, with an environment that imports from it.

    Args:
        root: The tree.
        python: Its interpreter.
    """

    root: Path
    python: Path

    @property
    def program(self) -> Path:
        """Its command."""
        return self.python.with_name("fast-agent")

    @classmethod
    def of(cls, root: Path, place: Path) -> Side:
        """Make the environment: the tree's source, before the packages that are installed here."""
        _run(sys.executable, "-m", "venv", "--without-pip", place)
        (packages,) = place.glob("lib/python*/site-packages")
        paths = (root / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
        (packages / "tree.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
        side = cls(root, place / "bin/python")
        side.program.write_text(f"#!{side.python}\n{_PROGRAM}", "utf-8")
        side.program.chmod(0o755)
        return side


@dataclass(frozen=True, slots=True)
class Pairs:
    """A figure of both sides.

    Args:
        name: What was measured.
        now: The values of this tree.
        before: Those of the other commit, in the same order.
        higher: Whether more is better.
    """

    name: str
    now: tuple[float, ...]
    before: tuple[float, ...]
    higher: bool

    @property
    def speeds(self) -> Samples:
        """How fast this tree is, the other commit being 1, pair by pair."""
        pairs = zip(self.now, self.before, strict=True)
        return Samples.of(a / b if self.higher else b / a for a, b in pairs if a and b)

    def figure(self) -> Figure:
        """Return it as a line of the table."""
        return Figure(name=self.name, unit="x", ours=self.speeds, goal=Goal(WORST, at_least=True))


def figures(setup: Setup) -> Iterator[Figure]:
    """Compare the start, calls over HTTP, reads over stdio and a load of cards with `AGAINST`."""
    with _sides(AGAINST, setup.work) as sides:
        for measure in MEASURES.values():
            for pairs in compare(setup, sides, measure, setup.rounds(PAIRS)):
                name = f"{pairs.name}: speed, {AGAINST} being 1"
                yield replace(pairs.figure(), name=name)


def compare(
    setup: Setup, sides: Mapping[str, Side], measure: Measure, pairs: int
) -> Iterator[Pairs]:
    """Measure both sides in turn; the values of the first pair are thrown away.

    A figure that is 0 on a side, such as a count of what must not happen, has no ratio.
    """
    runs = {name: partial(measure, setup, side) for name, side in sides.items()}
    values = interleave(runs, rounds=pairs)
    for name in values["now"][0]:
        if all(one.get(name) for both in values.values() for one in both):
            now, before = (tuple(one[name] for one in values[side]) for side in ("now", "before"))
            yield Pairs(name, now, before, higher=name.endswith("/s"))


def _start(setup: Setup, side: Side) -> Values:
    command = (side.program, "go", "--model", "passthrough", "--message", "hi")
    runs = [
        run_process(command, cwd=setup.work, environ=setup.environ, expect="hi")
        for _ in range(_STARTS)
    ]
    return {"one-shot start, processor ms": median(run.processor_seconds for run in runs) * 1e3}


def _http(setup: Setup, side: Side) -> Values:
    card = setup.work / "ann.md"
    card.write_text(_CARD, "utf-8")
    port, calls = free_port(), _CALLS // (10 if setup.quick else 1)
    command = (side.program, "serve", "--card", card, "--port", str(port), "--no-session")
    with HttpServer(command, port, cwd=setup.work, environ=setup.environ) as server:
        server.settle()
        one = server.connect()
        time_calls([one], "ann", 100)
        before = server.processor_seconds()
        time_calls([one], "ann", calls)
        worked = server.processor_seconds() - before
        one.socket.close()
    return {"HTTP calls of a processor, 1/s": calls / worked}


def _stdio(setup: Setup, side: Side) -> Values:
    reads = _READS // (10 if setup.quick else 1)
    command = (side.program, "resources", "serve", "--internal")
    with StdioClient(command, cwd=setup.work, environ=setup.environ) as client:
        client.open()
        client.time_each("resources/read", [{"uri": _URI}] * 100)
        before = client.processor_seconds()
        client.time_each("resources/read", [{"uri": _URI}] * reads)
        worked = client.processor_seconds() - before
    return {"stdio reads of a processor, 1/s": reads / worked}


def _cards(setup: Setup, side: Side) -> Values:
    """Load cards that act: as found and approved here, as given there, where nothing was gated."""
    desk = setup.work / "cards" / "desk"
    if not desk.exists():
        project(desk, KINDS["with shell and server"])
    script = ROOT / "bench" / "ours" / "found_cards.py"
    kind = "found" if side.root == ROOT else "given"
    run = run_process(
        [side.python, script, desk, kind], cwd=setup.work, environ=setup.environ, expect="seconds"
    )
    loaded = json.loads(run.output)
    if loaded["cards"] != CARDS:
        raise BenchError(f"{loaded['cards']} of {CARDS} cards were loaded")
    name = f"load of {CARDS:,} cards with a shell and a server, approved, processor ms"
    return {name: loaded["seconds"] * 1e3}


MEASURES: Final[Mapping[str, Measure]] = {
    "start": _start,
    "http": _http,
    "stdio": _stdio,
    "cards": _cards,
}


def _family(family: str, setup: Setup, side: Side) -> Values:
    """Run a family by the benchmark of its side."""
    found = setup.work / "figures.json"
    command = [side.python, "-m", "bench", "--only", family, "--json", found]
    if setup.quick:
        command.append("--quick")
    run = run_process(list(map(str, command)), cwd=side.root, environ=setup.environ, timeout=3600)
    figures = json.loads(found.read_text("utf-8"))["figures"]
    values = {f"{one['name']}, {one['unit']}": one["ours"]["median"] for one in figures}
    return {**values, f"all of `{family}`, processor s": run.processor_seconds}


@contextmanager
def _sides(commit: str, work: Path) -> Generator[dict[str, Side]]:
    """Check the other commit out, for as long as it is measured."""
    tree = work / "before"
    _run("git", "-C", ROOT, "worktree", "add", "--detach", tree, commit)
    try:
        yield {
            "before": Side.of(tree, work / "before-python"),
            "now": Side.of(ROOT, work / "now-python"),
        }
    finally:
        _run("git", "-C", ROOT, "worktree", "remove", "--force", tree)


def _run(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise BenchError(f"`{command[0]}` is not installed") from error
    except subprocess.CalledProcessError as error:
        raise BenchError(f"`{command[0]}` failed: {error.stderr.strip()}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print; the exit status is 1 where something could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.pairs", description=__doc__)
    parser.add_argument("--against", default=AGAINST, metavar="COMMIT")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N")
    parser.add_argument("--quick", action="store_true", help="measure less, and less surely")
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help="start, http, stdio, cards, or any"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        setup = Setup(Path(work).resolve(), options.quick)
        try:
            with _sides(options.against, setup.work) as sides:
                print(f"| figure | now | {options.against} | speed (min-max) | goal | met |")
                print("|---|---|---|---|---|---|")
                for name in options.families or MEASURES:
                    measure = MEASURES.get(name) or partial(_family, name)
                    for pairs in compare(setup, sides, measure, options.pairs):
                        print(_row(pairs), flush=True)
        except BenchError as error:
            print(f"not measured: {error}", file=sys.stderr)
            return 1
    return 0


def _row(pairs: Pairs) -> str:
    figure, speeds = pairs.figure(), pairs.speeds
    spread = f"{speeds.median:.3f}x ({speeds.low:.3f}-{speeds.high:.3f})"
    middle = (number(median(pairs.now)), number(median(pairs.before)))
    met = "yes" if figure.met else "NO"
    return f"| {pairs.name} | {' | '.join(middle)} | {spread} | >= {WORST}x | {met} |"


if __name__ == "__main__":
    sys.exit(main())
