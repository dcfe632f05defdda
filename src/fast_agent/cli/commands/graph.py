"""`fast-agent graph`, and the card graph as an SVG picture."""

from __future__ import annotations

from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from fast_agent.cli import options
from fast_agent.cli.output import hide_in_errors, standard_output
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import cells, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cli.card_graph import CardGraph, Node


@click.command()
@click.argument("paths", nargs=-1)
@options.MULTI_CARD
@click.option(
    "--cost",
    is_flag=True,
    help="Show the maximum number of model requests and tool calls of a turn.",
)
@options.CONFIG_PATH
@click.option(
    "--format",
    "output",
    type=click.Choice(["mermaid", "svg", "table", "json"]),
    help="A Mermaid diagram, an SVG image, a table or JSON. The default is a table with --cost, "
    "otherwise Mermaid.",
)
def command(
    paths: tuple[str, ...],
    multi_card: bool,
    cost: bool,
    config_path: Path | None,
    output: str | None,
) -> None:
    """Draw the agents of cards and their references. Nothing is run.

    PATHS are files, directories and addresses that are loaded together. The default is the cards
    that load automatically in this directory, or else the directory itself.
    """
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_graph import CardGraph, render_graph
    from fast_agent.cli.card_options import found_cards
    from fast_agent.trust.gate import TrustOptions

    program = FastAgent(
        config_path=config_path,
        trust=TrustOptions(passive=True),
    )
    hide_in_errors(program.redact)
    named: tuple[str | Path, ...] = paths or (*found_cards(program, (), ())[2],) or (".",)
    where = [one if "://" in str(one) else Path(one).absolute() for one in named]
    program.load(cards=where, multi_card=multi_card, found=() if paths else where)
    graph = CardGraph.of(program, cost=cost)
    if output == "svg":
        text = draw_graph(graph)
    else:
        text = render_graph(graph, output or ("table" if cost else "mermaid"))
    standard_output().write_facts(text)


_LETTER: Final = 8.0
_LINE: Final = 18.0
_EDGE: Final = 12.0
_MAX_LABEL_CHARACTERS: Final = 60
_STYLE: Final = """\
    text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328;
      text-anchor: middle; dominant-baseline: central }
    .box { fill: #f6f8fa; stroke: #57606a } .flow { fill: #ddf4ff; stroke: #0969da }
    .server { fill: #fff8c5; stroke: #9a6700 } .default { stroke-width: 3 }
    .added { fill: #dafbe1; stroke: #1a7f37; stroke-width: 3 }
    .removed { fill: #ffebe9; stroke: #cf222e; stroke-dasharray: 6 4 }
    .changed { stroke: #9a6700; stroke-width: 3 }
    .name { font-weight: bold } .small { font-size: 11px }
    .edge { fill: none; stroke: #57606a } .uses { stroke-dasharray: 4 3 }
    .label { font-size: 11px; stroke: #ffffff; stroke-width: 4; paint-order: stroke }"""

_ARROW: Final = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
    ' orient="auto"><path d="M0 0L8 4L0 8z" fill="#57606a"/></marker>'
)


NO_MARKS: Final[Mapping[str, str]] = MappingProxyType({})


def draw_graph(graph: CardGraph, marks: Mapping[str, str] = NO_MARKS) -> str:
    """Draw a graph.

    Args:
        graph: The graph.
        marks: `added`, `removed` or `changed` by agent, which is also written below its name.

    Returns:
        An SVG document; names in it are text, whatever they hold.
    """
    servers = dict.fromkeys(name for node in graph.nodes for name in node.config.servers)
    texts = {
        name: [name, *node.facts, *filter(None, [marks.get(name)])]
        for node in graph.nodes
        if (name := node.config.name)
    }
    texts |= {f"\0{name}": [name] for name in servers}
    texts = {key: [_shown(line) for line in lines] for key, lines in texts.items()}
    labels = _labels(graph)
    widest = max([cells(label) for label in labels.values()], default=0)
    sizes = {key: _size(lines) for key, lines in texts.items()}
    layout = lay_out(sizes, list(labels), max(60.0, widest * 9.0 + 36))
    pen = _Pen(layout.size)
    for (ends, label), way in zip(labels.items(), layout.ways, strict=True):
        pen.edge(way, label, uses=ends[1].startswith("\0"))
    for node in graph.nodes:
        name = node.config.name
        pen.agent(node, layout.spots[name], texts[name], marks.get(name, ""))
    for name in servers:
        pen.server(layout.spots[f"\0{name}"], texts[f"\0{name}"])
    return pen.picture()


def _labels(graph: CardGraph) -> dict[tuple[str, str], str]:
    """Return one edge for each pair, with all labels on it."""
    found: dict[tuple[str, str], list[str]] = {}
    for edge in graph.edges:
        found.setdefault((edge.source, edge.target), []).append(edge.label)
    for node in graph.nodes:
        for name in node.config.servers:
            found[node.config.name, f"\0{name}"] = []
    return {ends: _shown(", ".join(dict.fromkeys(labels))) for ends, labels in found.items()}


def _shown(text: str) -> str:
    line = visible(text)
    return line if len(line) <= _MAX_LABEL_CHARACTERS else f"{line[: _MAX_LABEL_CHARACTERS - 1]}…"


def _size(lines: Sequence[str]) -> Size:
    return Size(max(map(cells, lines)) * _LETTER + 40, len(lines) * _LINE + 18)


class _Pen:
    """Writes the elements of a picture.

    Args:
        size: The size of what is drawn.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        self._elements: list[str] = []

    def agent(self, node: Node, spot: Spot, lines: Sequence[str], mark: str) -> None:
        """Draw an agent: a box, or a hexagon for a workflow."""
        flow = node.config.type not in ("agent", "smart")
        kind = ("flow" if flow else "box") + (" default" if node.default else "")
        kind = f"{kind} {mark}".rstrip()
        if flow:
            self._elements.append(f'<polygon class="{kind}" points="{_hexagon(spot)}"/>')
        else:
            self._rect(spot, kind, 4)
        self._lines(spot, lines)

    def server(self, spot: Spot, lines: Sequence[str]) -> None:
        """Draw an MCP server."""
        self._rect(spot, "server", spot.size.height / 2)
        self._lines(spot, lines)

    def edge(self, way: Sequence[Spot], label: str, *, uses: bool) -> None:
        """Draw an arrow through the spots of a way."""
        curves = [f"M{way[0].right:g} {way[0].middle:g}"]
        for one, other in pairwise(way):
            between = (one.right + other.left) / 2
            curves.append(
                f"C{between:g} {one.middle:g} {between:g} {other.middle:g}"
                f" {other.left:g} {other.middle:g}"
            )
            if other is not way[-1]:
                curves.append(f"H{other.right:g}")
        kind = "edge uses" if uses else "edge"
        path = " ".join(curves)
        self._elements.append(f'<path class="{kind}" d="{path}" marker-end="url(#arrow)"/>')
        if label:
            # Nearer to where it comes from: in the middle, edges cross.
            x = way[0].right + 0.39 * (way[1].left - way[0].right)
            y = way[0].middle + 0.3 * (way[1].middle - way[0].middle)
            self._elements.append(_text(x, y, label, "label"))

    def picture(self) -> str:
        """Return the whole document."""
        width, height = self._size.width + 2 * _EDGE, self._size.height + 2 * _EDGE
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
            f' viewBox="{-_EDGE:g} {-_EDGE:g} {width:g} {height:g}">'
        )
        paper = f'<rect x="{-_EDGE:g}" y="{-_EDGE:g}" width="100%" height="100%" fill="#ffffff"/>'
        style = f"<style>\n{_STYLE}\n  </style>"
        body = [f"  {element}" for element in (style, _ARROW, paper, *self._elements)]
        return "\n".join([head, *body, "</svg>\n"])

    def _rect(self, spot: Spot, kind: str, radius: float) -> None:
        top = spot.middle - spot.size.height / 2
        self._elements.append(
            f'<rect class="{kind}" x="{spot.left:g}" y="{top:g}" width="{spot.size.width:g}"'
            f' height="{spot.size.height:g}" rx="{radius:g}"/>'
        )

    def _lines(self, spot: Spot, lines: Sequence[str]) -> None:
        x = spot.left + spot.size.width / 2
        first = spot.middle - (len(lines) - 1) * _LINE / 2
        for at, line in enumerate(lines):
            self._elements.append(_text(x, first + at * _LINE, line, "small" if at else "name"))


def _hexagon(spot: Spot) -> str:
    left, right, inset = spot.left, spot.right, 12.0
    middle = spot.middle
    top, bottom = middle - spot.size.height / 2, middle + spot.size.height / 2
    corners = (
        (left, middle),
        (left + inset, top),
        (right - inset, top),
        (right, middle),
        (right - inset, bottom),
        (left + inset, bottom),
    )
    return " ".join([f"{x:g},{y:g}" for x, y in corners])


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


BETWEEN: Final = 18.0
"""Least space between two boxes of a column, in pixels."""

_SWEEPS: Final = 6


@frozen
class Size:
    """The size of a box, in pixels."""

    width: float
    height: float


@frozen
class Spot:
    """Where a box is: the middle of its left side and its size, in pixels."""

    left: float
    middle: float
    size: Size

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.left + self.size.width


@frozen
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
    beside = _Neighbors(paths)
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


class _Neighbors:
    """Which boxes are joined to each, in the column before and in the one after."""

    def __init__(self, paths: Sequence[Sequence[str]]) -> None:
        self._before: dict[str, list[str]] = {}
        self._after: dict[str, list[str]] = {}
        for path in paths:
            for one, other in pairwise(path):
                self._after.setdefault(one, []).append(other)
                self._before.setdefault(other, []).append(one)

    def of(self, name: str, *, before: bool) -> Sequence[str]:
        """Return the boxes of one side."""
        return (self._before if before else self._after).get(name, ())


def _columns(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the column of each box: right of everything that leads to it."""
    before: dict[str, list[str]] = {name: [] for name in sizes}
    for source, target in edges:
        before[target].append(source)
    columns: dict[str, int] = {}
    for name in TopologicalSorter(before).static_order():
        columns[name] = max((columns[one] + 1 for one in before[name]), default=0)
    return columns


def _order(rows: list[list[str]], beside: _Neighbors, *, to_the_right: bool) -> None:
    """Move the boxes of each column next to those they are joined to."""
    place = {name: at for row in rows for at, name in enumerate(row)}

    def middle(name: str) -> float:
        joined = beside.of(name, before=to_the_right)
        return sum([place[one] for one in joined]) / len(joined) if joined else place[name]

    for row in rows if to_the_right else reversed(rows):
        row.sort(key=middle)
        place.update({name: at for at, name in enumerate(row)})


def _middles(
    rows: Sequence[Sequence[str]], boxes: Mapping[str, Size], beside: _Neighbors
) -> dict[str, float]:
    """Return the height of each box in its column, as near to its neighbours as there is room."""
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
