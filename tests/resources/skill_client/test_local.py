"""Skills in directories of this machine, and the check of the directories a card names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load import load_cards
from fast_agent.resources.skill_client.catalog import SkillCatalog
from fast_agent.resources.skill_client.entry import SkillError
from fast_agent.resources.skill_client.local import LocalSkills
from fast_agent.runtime.card_probes import skill_probe

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio


def write_skill(root: Path, name: str, more: str = "", body: str = "Do it.") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: All about {name}.\n{more}---\n{body}\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def catalog_of(*directories: Path, optional: bool = True) -> SkillCatalog:
    return SkillCatalog([LocalSkills(map(str, directories), optional=optional)])


async def test_the_list_is_the_same_while_nothing_changes(tmp_path: Path) -> None:
    write_skill(tmp_path, "plan")
    catalog = catalog_of(tmp_path)
    first = await catalog.scan()
    assert await catalog.scan() is first
    write_skill(tmp_path, "plan", body="Another body.")
    assert [skill.name for skill in await catalog.scan()] == ["plan"]
    write_skill(tmp_path, "more")
    assert [skill.name for skill in await catalog.scan()] == ["more", "plan"]


async def test_the_earlier_directory_has_the_skill_and_the_other_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_skill(tmp_path / "a", "plan", body="The first.")
    write_skill(tmp_path / "b", "plan", body="The second.")
    catalog = catalog_of(tmp_path / "a", tmp_path / "b")
    _, data = await catalog.load("plan")
    assert b"The first." in data
    assert len(await catalog.scan()) == 1
    assert "is also the URI of" in caplog.text


async def test_skills_of_other_programs_load_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write_skill(tmp_path, "plan", "model: opus\nhooks: {stop: run.sh}\n")
    catalog = catalog_of(tmp_path)
    assert [skill.name for skill in await catalog.scan()] == ["plan"]
    assert caplog.text == ""


async def test_what_is_left_out_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (write_skill(tmp_path, "broken") / "SKILL.md").write_text("no frontmatter")
    folder = write_skill(tmp_path, "linked")
    (folder / "key").symlink_to("/etc/hostname")
    catalog = catalog_of(tmp_path, tmp_path / "none", optional=False)
    assert [skill.name for skill in await catalog.scan()] == ["linked"]
    for word in ("FA751", "is a link", "FA766"):
        assert word in caplog.text
    skill, _ = await catalog.load("linked")
    assert list(skill.entry.files or ()) == ["SKILL.md"]
    with pytest.raises(SkillError, match="has no file `key`"):
        await catalog.read("linked", "key")


async def test_a_skill_that_went_away_is_an_error(tmp_path: Path) -> None:
    folder = write_skill(tmp_path, "plan")
    (folder / "a.md").write_text("a")
    catalog = catalog_of(tmp_path)
    await catalog.load("plan")
    (folder / "a.md").unlink()
    with pytest.raises(SkillError, match=r"a\.md"):
        await catalog.read("plan", "a.md")
    (folder / "SKILL.md").unlink()
    with pytest.raises(SkillError, match="there is no skill `plan`"):
        await catalog.load("plan")


def test_a_card_whose_directory_is_missing_is_reported_where(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("")
    card = tmp_path / "a.md"
    card.write_text("---\nname: a\nskills:\n  - there\n  - nope\n  - file\n---\nHi\n")
    single = tmp_path / "b.md"
    single.write_text("---\nname: b\nskills: nope\n---\nHi\n")
    one, other = load_cards([card, single]).cards
    found = list(skill_probe(one, workspace=tmp_path))
    assert [problem.message for problem in found] == [
        "the folder of skills `nope` does not exist",
        "the folder of skills `file` is not a folder",
    ]
    assert [problem.span.start.line for problem in found if problem.span] == [5, 6]
    (alone,) = skill_probe(other, workspace=tmp_path)
    assert alone.span is not None
    assert alone.span.start.line == 3


def test_only_directories_a_card_itself_names_are_checked(tmp_path: Path) -> None:
    for config in (
        AgentConfig(name="a"),
        AgentConfig(name="a", skills=()),
        AgentConfig(name="a", skills=("nope",), remote="https://example.com/a.md"),
    ):
        assert list(skill_probe(Card(config, "a.md"), workspace=tmp_path)) == []
