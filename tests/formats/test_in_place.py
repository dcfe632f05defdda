"""Agents of other tools loaded from where they are, without an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent import FastAgent
from fast_agent.cards.load import load_cards
from fast_agent.formats.in_place import AgentsInPlace
from fast_agent.registry.card_root import CardReader, CardRoot

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.load import CardLoad
    from fast_agent.formats.draft import ToolChoice

CLAUDE = """\
---
name: reviewer
description: Reviews changes. Use when: there is a diff
tools: Read, mcp__tickets__find
color: red
---
You review {{what}} for ${USER}.
"""
CODEX = """\
name = "audit"
description = "Audits for ${TEAM}"
developer_instructions = "You audit."
"""


def write(project: Path, place: str, text: str) -> Path:
    path = project / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, choice: ToolChoice = "none", servers: tuple[str, ...] = ()) -> CardLoad:
    return load_cards([folder], environ={}, foreign=AgentsInPlace(choice, servers))


@pytest.mark.spec("FMT-27")
@pytest.mark.parametrize(
    ("place", "text", "name"),
    [
        (".claude/agents/team/one.md", "---\nname: one\ndescription: It\n---\nBe one.\n", "one"),
        (".github/agents/one.agent.md", "---\ndescription: It\n---\nBe one.\n", "one"),
        (".github/chatmodes/one.chatmode.md", "---\ndescription: It\n---\nBe one.\n", "one"),
        (".opencode/agent/one.md", "---\ndescription: It\nmode: primary\n---\nBe one.\n", "one"),
        (".gemini/agents/one.md", "---\nname: one\ndescription: It\n---\nBe one.\n", "one"),
        (".codex/agents/one.toml",
         'name = "one"\ndescription = "It"\ndeveloper_instructions = "Be one."\n', "one"),
    ],
)  # fmt: skip
def test_every_place_of_another_tool_is_a_directory_of_cards(
    tmp_path: Path, place: str, text: str, name: str
) -> None:
    file = write(tmp_path, place, text)
    folder = next(one for one in file.parents if one.parent.name.startswith("."))
    load = loaded(folder)
    assert [(card.config.name, card.config.source) for card in load.cards] == [(name, file)]
    assert load.cards[0].config.instruction == "Be one."
    assert not load.failed


@pytest.mark.spec("FMT-27", "FMT-28")
def test_fields_are_mapped_as_by_an_import_and_losses_have_the_place_in_the_file(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, ".claude/agents/reviewer.md", CLAUDE)
    load = loaded(file.parent, servers=("tickets",))
    (card,) = load.cards
    assert (card.config.servers, card.config.files) == (("tickets",), "read")
    assert card.config.instruction == "You review \\{{what}} for ${USER}."
    lost = {one.code: one for one in load.diagnostics}
    assert lost["FA831"].path == str(file)
    assert lost["FA831"].span is not None
    assert lost["FA831"].span.start.line == 5
    # The text of the card is not that of the file: no line of it is claimed to be one.
    assert card.span_of("description") is None


@pytest.mark.spec("FMT-28")
def test_files_that_are_no_agents_are_skipped_and_stop_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path, ".codex/agents/audit.toml", CODEX).parent
    write(tmp_path, ".codex/agents/broken.toml", "name = \n")
    write(tmp_path, ".codex/agents/notes.md", "just notes\n")
    load = loaded(folder)
    assert [card.config.name for card in load.cards] == ["audit"]
    assert load.cards[0].config.description == "Audits for ${TEAM}"
    assert not load.failed
    skipped = {one.path.rpartition("/")[2]: one.severity for one in load.diagnostics
               if one.code == "FA838"}  # fmt: skip
    assert skipped == {"broken.toml": "warning", "notes.md": "info"}


@pytest.mark.spec("FMT-27")
def test_a_file_with_several_agents_loses_none(tmp_path: Path) -> None:
    team = (
        "agents:\n  root: {model: openai/gpt-5, instruction: Lead., sub_agents: [helper]}\n"
        "  helper: {model: openai/gpt-5, description: Helps, instruction: Help.}\n"
    )
    load = loaded(write(tmp_path, ".opencode/agents/team.yaml", team).parent)
    assert [card.config.name for card in load.cards] == ["root", "helper"]
    assert load.cards[0].config.agents == ("helper",)
    assert not load.failed


@pytest.mark.spec("FMT-27")
def test_an_agent_that_names_no_tools_gets_those_of_the_setting(tmp_path: Path) -> None:
    folder = write(tmp_path, ".claude/agents/a.md", "---\nname: a\ndescription: d\n---\nx\n").parent
    given = {choice: loaded(folder, choice).cards[0].config for choice in ("none", "files", "all")}
    assert [one.files for one in given.values()] == [None, "write", "write"]
    assert [one.shell for one in given.values()] == [False, False, True]


@pytest.mark.spec("FMT-29")
def test_a_change_in_place_is_seen_by_the_next_look(tmp_path: Path) -> None:
    file = write(tmp_path, ".claude/agents/sub/reviewer.md", CLAUDE)
    folder = tmp_path / ".claude/agents"
    reader = CardReader(tmp_path, {}, pytest.fail, lambda: AgentsInPlace("none"))
    root = CardRoot(reader, folder, multi_card=False)
    assert (root.scan(), len(root.load.cards)) == (False, 1)
    file.write_text(CLAUDE.replace("You review", "You judge"), encoding="utf-8")
    assert root.scan()
    assert (root.load.cards[0].config.instruction or "").startswith("You judge")
    write(tmp_path, ".claude/agents/sub/more/other.md", CLAUDE.replace("reviewer", "other"))
    assert root.scan()
    assert {card.config.name for card in root.load.cards} == {"reviewer", "other"}
    file.unlink()
    assert root.scan()
    assert [card.config.name for card in root.load.cards] == ["other"]
    assert not root.scan()


@pytest.mark.anyio
@pytest.mark.spec("FMT-27")
async def test_python_loads_a_directory_that_a_program_names(tmp_path: Path) -> None:
    write(tmp_path, ".claude/agents/reviewer.md", CLAUDE)
    fast = FastAgent(cwd=tmp_path, environ={"HOME": str(tmp_path / "home")})
    assert fast.load_agents(".claude/agents") == ["reviewer"]
    async with fast.run(model="passthrough") as app:
        assert await app.reviewer.send("hi") == "hi"
