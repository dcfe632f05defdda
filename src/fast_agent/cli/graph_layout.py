"""Graph layout: boxes in columns, so that every arrow leads to the right."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BETWEEN: Final = 18.0
"""Least space between two boxes of a column, in pixels."""

_SWEEPS: Final = 6


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a box, in pixels."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a box is: the middle of its left side and its size, in pixels."""

    left: float
    middle: float
    size: Size

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.left + self.size.width


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    Args:
        spots: Each box, by its name.
        ways: The spots each edge leads through, both ends included, in the order of the edges.
        size: The size of the whole.
    """

    spots: Mapping[str, Spot]
    ways: tuple[tuple[Spot, ...], ...]
    size: Size


def lay_out(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]], gap: float) -> Layout:
    """Find a place for every box.

    Args:
        sizes: The boxes, by name.
        edges: Pairs of names, from and to; they make no ring.
        gap: The space between two columns, in pixels.

    Returns:
        The layout; the same for the same graph.
    """
    columns = _columns(sizes, edges)
    rows: list[list[str]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for name in sizes:
        rows[columns[name]].append(name)
    boxes = dict(sizes)
    # An edge over several columns passes those between as a box without width.
    paths: list[list[str]] = []
    for number, (source, target) in enumerate(edges):
        path = [source]
        for column in range(columns[source] + 1, columns[target]):
            name = f"\0{number} {column}"
            boxes[name] = Size(0, 0)
            rows[column].append(name)
            path.append(name)
        paths.append([*path, target])
    beside = _Beside(paths)
    for sweep in range(_SWEEPS):
        _order(rows, beside, to_the_right=sweep % 2 == 0)
    middles = _middles(rows, boxes, beside)
    spots: dict[str, Spot] = {}
    left = 0.0
    for row in rows:
        width = max((boxes[name].width for name in row), default=0)
        for name in row:
            into = (width - boxes[name].width) / 2
            spots[name] = Spot(left + into, middles[name], boxes[name])
        left += width + gap
    top = min((one.middle - one.size.height / 2 for one in spots.values()), default=0)
    spots = {name: Spot(one.left, one.middle - top, one.size) for name, one in spots.items()}
    height = max((one.middle + one.size.height / 2 for one in spots.values()), default=0)
    return Layout(
        {name: spots[name] for name in sizes},
        tuple([tuple([spots[name] for name in path]) for path in paths]),
        Size(max(0.0, left - gap), height),
    )


class _Beside:
    """Which boxes are joined to each, in the column before and in the one after."""

    def __init__(self, paths: Sequence[Sequence[str]]) -> None:
        self._before: dict[str, list[str]] = {}
        self._after: dict[str, list[str]] = {}
        for path in paths:
            for one, other in pairwise(path):
                self._after.setdefault(one, []).append(other)
                self._before.setdefault(other, []).append(one)

    def of(self, name: str, *, before: bool) -> Sequence[str]:
        """Give those of one side."""
        return (self._before if before else self._after).get(name, ())


def _columns(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Give each box its column: right of everything that leads to it."""
    before: dict[str, list[str]] = {name: [] for name in sizes}
    for source, target in edges:
        before[target].append(source)
    columns: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        columns[name] = max((columns[one] + 1 for one in before[name]), default=0)
    return columns


def _order(rows: list[list[str]], beside: _Beside, *, to_the_right: bool) -> None:
    """Put the boxes of each column beside those they are joined to."""
    place = {name: at for row in rows for at, name in enumerate(row)}

    def middle(name: str) -> float:
        joined = beside.of(name, before=to_the_right)
        return sum([place[one] for one in joined]) / len(joined) if joined else place[name]

    for row in rows if to_the_right else reversed(rows):
        row.sort(key=middle)
        place.update({name: at for at, name in enumerate(row)})


def _middles(
    rows: Sequence[Sequence[str]], boxes: Mapping[str, Size], beside: _Beside
) -> dict[str, float]:
    """Give each box its height in its column, as near to those it is joined to as there is room."""
    middles: dict[str, float] = dict.fromkeys(boxes, 0.0)
    for sweep in range(_SWEEPS):
        before = sweep % 2 == 0
        for row in rows if before else reversed(rows):
            wanted: list[float] = []
            for name in row:
                joined = beside.of(name, before=before) or beside.of(name, before=not before)
                at = sum([middles[one] for one in joined]) / len(joined) if joined else 0.0
                wanted.append(at)
            placed: list[float] = []
            for at, name in enumerate(row):
                least = wanted[at]
                if placed:
                    half = (boxes[row[at - 1]].height + boxes[name].height) / 2
                    least = max(least, placed[-1] + half + BETWEEN)
                placed.append(least)
            # What had to make room moved down only; the column as a whole goes back by as much.
            shift = sum(placed) - sum(wanted)
            for name, at in zip(row, placed, strict=True):
                middles[name] = at - shift / len(row)
    return middles
