"""Print how the house stands: `python -m bench.house [--list] [--tree DIR]`, or `make house`.

Each figure stands beside its goal. `--list` names the files behind a figure.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.house.entered import files_entered, modules_loaded, seconds_of_go
from bench.house.source import PACKAGE, House

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]


class Figure(NamedTuple):
    """One line of the table.

    Args:
        name: What is counted.
        value: How many there are.
        goal: How many there may be; None where the figure is counted for information.
        places: Where.
    """

    name: str
    value: float
    goal: float | None
    places: Sequence[str] = ()

    @property
    def line(self) -> str:
        """The figure as a line."""
        if self.goal is None:
            return f"  {self.name:<66} {self.value:>8,.0f}"
        mark = " " if self.value <= self.goal else "!"
        return f"{mark} {self.name:<66} {self.value:>8,.0f}   ≤ {self.goal:,.0f}"


def figures(source: Path) -> Iterator[Figure]:
    """Count.

    Args:
        source: The directory with the package.
    """
    house = House(source / PACKAGE)
    chapters = {
        name: importer
        for name, importer in house.chapters().items()
        if not house.modules[name].is_later
    }
    circles = house.circles()
    yield Figure("source lines, without pages and later features", house.lines(later=False), 58_000)
    yield Figure("source lines of later features", house.lines(later=True), None)
    yield Figure("files, without later features", house.files(later=False), 330)
    yield Figure("files of later features", house.files(later=True), None)
    yield Figure(
        "files with one importer, without later features",
        len(chapters),
        50,
        [f"{name} <- {importer}" for name, importer in chapters.items()],
    )
    yield _named("readers of JSON-RPC", house.readers(), 1)
    yield _named("edges over agents", house.edges(), 1)
    yield _named(
        "files outside of recording, engine, runtime, cli that know of it",
        house.know_recording(),
        0,
    )
    yield _named(
        "branches on journal, listener, pool, steps being None", house.optional_branches(), 10
    )
    yield _named(
        "circles of files, type-only imports counted",
        [", ".join(sorted(ring)) for ring in circles],
        0,
    )
    yield Figure("files in the largest circle", max(map(len, circles), default=0), 0)
    yield _named("files that import by a string", house.hidden_imports(), 3)
    yield _named("files entered by one plain `tools/call`", files_entered(source), 45)
    yield Figure("modules of ours loaded by `go`, one message", modules_loaded(source), 110)
    yield Figure("`go`, one message, whole process, ms", seconds_of_go(source) * 1e3, 150)


def _named(name: str, places: Sequence[str], goal: int) -> Figure:
    return Figure(name, len(places), goal, places)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Count how the source stands to its goals.")
    parser.add_argument("--list", action="store_true", help="name the files behind each figure")
    parser.add_argument("--tree", type=Path, default=ROOT, metavar="DIR", help="another checkout")
    options = parser.parse_args()
    for figure in figures(options.tree / "src"):
        print(figure.line, flush=True)
        if options.list:
            for place in figure.places:
                print(f"      {place}")


if __name__ == "__main__":
    main()
