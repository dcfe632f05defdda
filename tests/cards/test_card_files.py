"""What the name of a file says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.card_files import (
    MAX_SEARCHED,
    is_configuration,
    is_markdown,
    is_skill,
    is_test_file,
    other_entries,
    stem,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.md", True),
        ("A.MD", True),
        ("a.markdown", True),
        ("a.md.txt", False),
        ("amd", False),
        ("a.yaml", False),
    ],
)
def test_markdown(name: str, wanted: bool) -> None:
    assert is_markdown(name) is wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("SKILL.md", True),
        ("SKILL.MD", True),
        ("skill.md", False),
        ("Skill.md", False),
        ("SKILLS.md", False),
        ("SKILL.yaml", False),
        ("MY-SKILL.md", False),
    ],
)
def test_a_skill_is_written_in_capitals(name: str, wanted: bool) -> None:
    assert is_skill(name) is wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("fastagent.config.yaml", True),
        ("fastagent.secrets.yaml", True),
        ("fastagent.config.yaml.bak", False),
        ("my-fastagent.config.yaml", False),
        ("config.yaml", False),
    ],
)
def test_configuration(name: str, wanted: bool) -> None:
    assert is_configuration(name) is wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("a.test.yaml", True), ("A.TEST.YAML", True), ("a.tests.yaml", False), ("test.yaml", False)],
)
def test_tests_of_a_card(name: str, wanted: bool) -> None:
    assert is_test_file(name) is wanted


@pytest.mark.parametrize(
    ("name", "wanted"), [("a.md", "a"), ("a.b.md", "a.b"), ("a", "a"), (".md", ".md")]
)
def test_the_name_of_a_card_without_one(name: str, wanted: str) -> None:
    assert stem(name) == wanted


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.txt", "`.txt` is not a suffix of cards; they end in .md, .markdown, .yaml, .yml"),
        ("Makefile", "it has no suffix; they end in .md, .markdown, .yaml, .yml"),
        ("a.test.yaml", "tests of a card"),
        ("fastagent.config.yaml", "a configuration file"),
    ],
)
def test_why_a_file_is_no_card(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / name).touch()
    (passed_over,) = other_entries(str(tmp_path), "set").files
    assert (passed_over.path, passed_over.reason) == (f"set/{name}", reason)


def test_the_search_for_cards_below_a_directory_is_bounded(tmp_path: Path) -> None:
    below = tmp_path / "z"
    below.mkdir()
    (below / "a.md").write_text("---\ntype: agent\n---\nHelp.\n")
    for number in range(MAX_SEARCHED - 2):
        (tmp_path / f"{number}.txt").touch()
    (found,) = other_entries(str(tmp_path), "here").directories
    assert found.path == "here/z"
    (tmp_path / "one-more.txt").touch()
    assert other_entries(str(tmp_path), "here").directories == ()
