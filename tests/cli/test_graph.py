"""`fast-agent graph`: the diagram, the table, the JSON, and the worst case in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _cards(project: Path) -> None:
    (project / "team.yaml").write_text(
        "type: chain\nsequence: [writer, 'x\"]-->y']\ndefault: true\n"
    )
    (project / "writer.md").write_text(
        "---\ntype: agent\nmodel: passthrough\nservers: [time]\n"
        "request_params: {max_iterations: 3, usage_limits: {max_tool_calls: 2}}\n---\nWrite.\n"
    )
    (project / "odd.yaml").write_text(
        "type: agent\nname: 'x\"]-->y'\nmodel: passthrough\ninstruction: Hi.\n"
        "request_params: {max_iterations: 5}\n"
    )
    (project / "fastagent.config.yaml").write_text(
        "mcp: {servers: {time: {command: uvx, sampling: false}}}\n"
    )


@pytest.mark.spec("COST-4")
def test_a_diagram(run: Run) -> None:
    assert run("graph", ".").out == (
        "flowchart LR\n"
        '    a1["x#34;#93;--#62;y<br/>agent"]\n'
        '    a2{{"team<br/>chain"}}\n'
        '    a3["writer<br/>agent"]\n'
        '    s1[("time")]\n'
        "    a2 -->|sequence 1| a3\n"
        "    a2 -->|sequence 2| a1\n"
        "    a3 -.-> s1\n"
        "    style a2 stroke-width:3px\n"
    )


@pytest.mark.spec("COST-1", "COST-4")
def test_a_table_of_costs(run: Run) -> None:
    lines = [line.split() for line in run("graph", "--cost").out.splitlines()]
    assert lines == [
        ["agent", "type", "asks", "requests", "tool", "calls"],
        ['x"]-->y', "agent", "-", "5", "0"],
        ["team", "(default)", "chain", "writer,", 'x"]-->y', "8", "2"],
        ["writer", "agent", "-", "3", "2"],
    ]
    assert "requests" not in run("graph", "--format", "table").out


@pytest.mark.spec("COST-1", "COST-2")
def test_what_is_unbounded_is_reported_with_its_remedy(run: Run, project: Path) -> None:
    (project / "fastagent.config.yaml").write_text("mcp: {servers: {time: {command: uvx}}}\n")
    done = run("graph", "--cost")
    assert done.code == 0
    assert 'team (default)  chain  writer, x"]-->y  unbounded  2' in done.out
    assert "- server `time` may ask for any number of model answers while `writer`" in done.out
    facts = run("graph", "--cost", "--format", "json").json
    team = next(one for one in facts["agents"] if one["name"] == "team")
    assert team["cost"]["requests"]["most"] is None
    assert "`sampling: false`" in team["cost"]["requests"]["unbounded_because"][0]
    assert team["cost"]["tool_calls"] == {"most": 2, "unbounded_because": []}
    assert facts["edges"] == [
        {"from": "team", "to": "writer", "field": "sequence"},
        {"from": "team", "to": 'x"]-->y', "field": "sequence"},
    ]
    assert "<br/>∞ requests, ≤ 2 calls" in run("graph", "--cost", "--format", "mermaid").out


def test_cards_that_are_wrong_are_not_drawn(run: Run, project: Path) -> None:
    (project / "team.yaml").write_text("type: chain\nsequence: [nobody]\n")
    ran = run("graph", ".")
    assert (ran.code, ran.out) == (1, "")
    assert "nobody" in ran.err
    assert run("graph", "no-such-place").code == 1
