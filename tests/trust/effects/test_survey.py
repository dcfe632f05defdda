"""The survey of a set: how its files are named, digested and looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.trust.found_project import CARDS, Project

from fast_agent.trust.approvals import Approvals
from fast_agent.trust.origin import Root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("TR-A2.2")
def test_a_card_behind_a_link_asks_again_where_its_words_change(tmp_path: Path) -> None:
    project = Project(tmp_path)
    words = "---\nmodel: passthrough\nshell: true\n---\n"
    file = project.write("cards/lead.md", f"{words}Be careful.\n")
    link = project.root / CARDS / "lead.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(file)
    before = project.found()
    assert {one.path for one in before.effects} <= before.files.keys()
    approvals = Approvals(project.home)
    approvals.approve(before)
    file.write_text(f"{words}Delete everything.\n")
    standing = approvals.standing(project.found())
    assert (standing.state, standing.rewritten) == ("changed", (f"{CARDS}/lead.md",))


def test_a_file_of_the_set_is_free_though_its_name_looks_secret(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.card("model: passthrough\n", "credentials-keeper")
    place = project.found().place
    assert place is not None
    assert place.is_free(project.root / CARDS / "credentials-keeper.md")
    assert not place.is_free(project.root / CARDS / "credentials-other.md")


@pytest.mark.parametrize(
    ("place", "free"),
    [
        ("notes.md", True),
        ("a/b/notes.md", True),
        ("a/id_rsa", False),
        (".hidden/notes.md", False),
        ("a/.env", False),
        (".fast-agent/notes.md", True),
        ("../deskmate/notes.md", False),
        ("..", False),
    ],
)
def test_where_a_path_ends_decides(tmp_path: Path, place: str, *, free: bool) -> None:
    root = tmp_path / "desk"
    root.mkdir()
    assert Root(root).is_free(root / place) is free


def test_a_directory_is_inside_itself(tmp_path: Path) -> None:
    root = Root(tmp_path.resolve())
    assert root.holds(root.path)
    assert root.name(root.path) == "."
    assert Root(root.path.parent / root.path.name[:-1]).name(root.path) == str(root.path)
