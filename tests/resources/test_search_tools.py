"""The tools of a server with documents, over its real service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.search import READ, SEARCH

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


def test_the_internal_documents_alone_can_be_searched_and_read() -> None:
    (addition,) = ResourceRoots(internal=True).open().additions
    tools = {one.name: one for one in addition.tools()}
    found = said(tools, SEARCH, query="fields of a router card")
    uri = found.split(" § ")[0]
    assert uri.startswith("internal://fast-agent/")
    assert said(tools, READ, uri=uri).startswith("# ")


def test_a_server_of_skills_alone_has_tools_of_its_own(tmp_path: Path) -> None:
    additions = ResourceRoots(skills=(str(tmp_path),)).open().additions
    assert SEARCH not in [one.name for addition in additions for one in addition.tools()]


def test_wrong_arguments_are_answers(tools: dict[str, ServedTool]) -> None:
    for name, arguments in (
        (SEARCH, {}),
        (SEARCH, {"query": " "}),
        (READ, {}),
        (READ, {"uri": "guide://help", "section": 1}),
        (READ, {"uri": "guide://help", "offset": -1}),
    ):
        assert tools[name].call(arguments).is_error
