"""The tools of a server with a guide, over its real service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.resources.guide.provider import READ, SEARCH
from fast_agent.resources.roots import ResourceRoots

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.resources.provider import ServedTool


@pytest.fixture(name="tools")
def _tools(tmp_path: Path) -> dict[str, ServedTool]:
    (tmp_path / ".guide.yaml").write_text("categories: {docs: {dir: docs}}\n")
    (tmp_path / "docs").mkdir()
    text = "# Deploy\n\n## Rollback\n\nUndo a release with `undo`.\n\n## Other\n\nNo.\n"
    (tmp_path / "docs/deploy.md").write_text(text)
    opened = ResourceRoots(guide=str(tmp_path)).open()
    (addition,) = opened.additions
    return {one.name: one for one in addition.tools()}


def said(tools: dict[str, ServedTool], name: str, **arguments: Any) -> str:
    return "\n".join(str(block["text"]) for block in tools[name].call(arguments).content)


@pytest.mark.spec("SEARCH-3")
def test_a_model_finds_and_reads_a_section_by_tools_alone(tools: dict[str, ServedTool]) -> None:
    found = said(tools, SEARCH, query="how do I roll back a release? undo")
    assert found.startswith("guide://document/docs/deploy.md § Deploy > Rollback (about ")
    uri, _, rest = found.splitlines()[0].partition(" § ")
    section = rest.partition(" (about ")[0]
    assert said(tools, READ, uri=uri, section=section).strip() == (
        "## Rollback\n\nUndo a release with `undo`."
    )
    assert "# Deploy" in said(tools, READ, uri=uri)
    assert said(tools, SEARCH, query="zebra") == "nothing found; try other words"


def test_wrong_arguments_are_answers(tools: dict[str, ServedTool]) -> None:
    for name, arguments in (
        (SEARCH, {}),
        (SEARCH, {"query": " "}),
        (READ, {}),
        (READ, {"uri": "guide://help", "section": 1}),
        (READ, {"uri": "guide://help", "offset": -1}),
    ):
        assert tools[name].call(arguments).is_error
