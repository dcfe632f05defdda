"""The SVG picture of a card set: what is in it, where, and that names in it are only text."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cli.commands.graph import BETWEEN, Size, lay_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

SVG = "{http://www.w3.org/2000/svg}"


def texts(root: ET.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


@pytest.mark.spec("COST-4")
def test_a_picture_shows_agents_servers_and_who_asks_whom(run: Run, project: Path) -> None:
    (project / "team.yaml").write_text(
        "type: chain\nsequence: [writer, ']]><script>&amp;', writer]\ndefault: true\n"
    )
    (project / "writer.md").write_text(
        "---\ntype: agent\nmodel: passthrough\nservers: [time]\n---\nWrite.\n"
    )
    (project / "odd.yaml").write_text(
        "type: agent\nname: ']]><script>&amp;'\nmodel: passthrough\ninstruction: Hi.\n"
        "request_params: {max_iterations: 5}\n"
    )
    (project / "fastagent.config.yaml").write_text("mcp: {servers: {time: {command: uvx}}}\n")
    root = ET.fromstring(run("graph", ".", "--format", "svg").out)
    assert sorted(texts(root)) == sorted(
        [
            "team",
            "chain",
            "writer",
            "agent",
            "]]><script>&amp;",
            "agent",
            "time",
            "sequence 1, sequence 3",
            "sequence 2",
        ]
    )
    kinds = [one.get("class") for one in root if one.get("class")]
    assert sorted(kind for kind in kinds if kind in ("box", "flow default", "server")) == [
        "box",
        "box",
        "flow default",
        "server",
    ]
    assert kinds.count("edge") == 2
    assert kinds.count("edge uses") == 1
    priced = ET.fromstring(run("graph", ".", "--cost", "--format", "svg").out)
    assert "≤ 5 requests, ≤ 0 calls" in texts(priced)
    assert "∞ requests, ∞ calls" in texts(priced)


def test_what_is_long_or_cannot_be_seen_is_drawn_short_and_plain(run: Run, project: Path) -> None:
    for file, name in (("odd.yaml", "n" * 500), ("other.yaml", "x\u202ey")):
        (project / file).write_text(
            f"type: agent\nname: {name}\nmodel: passthrough\ninstruction: Hi.\n", encoding="utf-8"
        )
    reported = run("graph", ".", "--format", "svg").out
    names = texts(ET.fromstring(reported))
    assert "x<U+202E>y" in names
    assert "\u202e" not in reported
    assert max(map(len, names)) == 60


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Size], list[tuple[str, str]]]:
    count = draw(st.integers(0, 9))
    side = st.integers(10, 200).map(float)
    sizes = {f"n{at}": Size(draw(side), draw(side)) for at in range(count)}
    pairs = list(combinations(sizes, 2))
    return sizes, draw(st.lists(st.sampled_from(pairs), unique=True) if pairs else st.just([]))


@given(graphs())
def test_every_arrow_leads_to_the_right_and_no_box_covers_another(
    graph: tuple[dict[str, Size], list[tuple[str, str]]],
) -> None:
    sizes, edges = graph
    layout = lay_out(sizes, edges, 50.0)
    assert layout.spots.keys() == sizes.keys()
    for (source, target), way in zip(edges, layout.ways, strict=True):
        assert (way[0], way[-1]) == (layout.spots[source], layout.spots[target])
        for one, other in pairwise(way):
            assert one.right + 49 < other.left
    for one, other in combinations(layout.spots.values(), 2):
        beside = one.right < other.left or other.right < one.left
        apart = abs(one.middle - other.middle) - (one.size.height + other.size.height) / 2
        assert beside or apart > BETWEEN - 0.01
    for spot in layout.spots.values():
        assert spot.left >= -0.01
        assert spot.right <= layout.size.width + 0.01
        assert spot.middle - spot.size.height / 2 >= -0.01
        assert spot.middle + spot.size.height / 2 <= layout.size.height + 0.01
