"""Which files are asked about separately at every write."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fast_agent import FastAgent
from fast_agent.runtime.protected_files import ProtectedFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> ProtectedFiles:
    cards = tmp_path / "work/team/cards"
    cards.mkdir(parents=True)
    fields = "name: ann\nmessages: [../shots.txt]\nmcp_connect: ['uv run serve.py']\n"
    (cards / "ann.md").write_text(f"---\n{fields}---\nHi.\n")
    (tmp_path / "work/team/shots.txt").write_text("hello\n")
    (tmp_path / "work/extra").mkdir()
    settings = (
        "skills: {directories: [extra]}\nguide: {docroot: docs}\n"
        "mcp: {servers: {web: {command: sh, args: [-c, 'python3 srv/web.py'], cwd: .},"
        " far: {command: uv, args: [--directory, far, run, main.py], cwd: .}}}\n"
    )
    for folder in ("docs", "far"):
        (tmp_path / "work" / folder).mkdir()
    (tmp_path / "work/settings.yaml").write_text(settings)
    home = tmp_path / "home"
    program = FastAgent(
        cwd=tmp_path / "work",
        environ={"FAST_AGENT_HOME": str(home)},
        config_path=tmp_path / "work/settings.yaml",
    )
    program.load_agents(cards)
    return ProtectedFiles(program, home, tmp_path / "work")


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("work/team/cards/bob.md", True),  # it would load with the next start
        ("work/team/cards/notes.txt", True),
        ("work/team/cards/below/tools.py", True),
        ("work/team/shots.txt", True),  # a card starts with it
        ("work/team/other.txt", False),
        ("work/extra/skill/SKILL.md", True),
        ("work/srv/web.py", True),  # a server of the configuration
        ("work/srv/other.py", False),
        ("work/far/main.py", True),
        ("work/far/other.py", False),
        ("work/team/cards/serve.py", True),
        ("work/docs/page.md", True),
        ("work/settings.yaml", True),
        ("work/sub/fastagent.config.yaml", True),
        ("work/sub/FastAgent.Secrets.yaml", True),
        ("work/sub/ann.test.yaml", True),
        ("work/sub/.git/hooks/pre-commit", True),
        ("work/sub/.fast-agent/skills/x.md", True),
        ("work/Makefile", True),
        ("work/sub/package.json", True),
        ("home/approvals.json", True),
        ("home.txt", False),
        ("work/src/main.py", False),
        ("work/notes.md", False),
    ],
)
def test_what_is_loaded_or_run_later_is_protected(
    files: ProtectedFiles, tmp_path: Path, path: str, *, held: bool
) -> None:
    assert files.holds(tmp_path / path) is held


@pytest.mark.parametrize(
    ("path", "held"), [("bob.md", True), ("bob.py", False), ("below/bob.md", False)]
)
def test_of_a_project_that_lies_where_cards_are_loaded_from_only_cards_are_protected(
    tmp_path: Path, path: str, *, held: bool
) -> None:
    (tmp_path / "ann.md").write_text("---\nname: ann\n---\nHi.\n")
    program = FastAgent(cwd=tmp_path, environ={"FAST_AGENT_HOME": str(tmp_path / "home")})
    program.load_agents(tmp_path)
    files = ProtectedFiles(program, tmp_path / "home", tmp_path)
    assert files.holds(tmp_path / path) is held


def test_a_hard_link_to_a_loaded_file_is_protected(files: ProtectedFiles, tmp_path: Path) -> None:
    other, plain = tmp_path / "work/other.txt", tmp_path / "work/plain.txt"
    os.link(tmp_path / "work/team/shots.txt", other)
    plain.write_text("x")
    os.link(plain, tmp_path / "work/linked.txt")
    assert files.holds(other)
    assert not files.holds(plain)
