"""`fast-agent import`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

AGENT = "---\nname: reviewer\ndescription: d\ntools: Read, TodoWrite\ncolor: red\n---\nReview.\n"


@pytest.fixture
def agents(project: Path) -> Path:
    place = project / ".claude/agents"
    place.mkdir(parents=True)
    (place / "reviewer.md").write_text(AGENT)
    return place


@pytest.mark.spec("FMT-12")
@pytest.mark.usefixtures("agents")
def test_a_project_is_imported_and_runs(run: Run) -> None:
    card = Path(".fast-agent/agent-cards/reviewer.md")
    dry = run("import", ".", "--dry-run")
    assert f"would write {card}" in dry.out
    assert not card.exists()
    ran = run("import", ".")
    assert ran.code == 0
    assert f"wrote {card}" in ran.out
    assert "warning[FA831]: `color` has no counterpart" in ran.err
    assert "--> .claude/agents/reviewer.md:5:1" in ran.err
    assert run("check", str(card.parent)).code == 0
    answer = run("go", "--card", str(card.parent), "--model", "passthrough", "--message", "hello")
    assert answer.out == "hello\n"
    assert "then fast-agent go\n" in ran.err
    assert "everything was there already" in run("import", ".").err
    elsewhere = run("import", ".", "--output", "cards")
    assert "then fast-agent go --card cards\n" in elsewhere.err
    card.write_text("mine")
    refused = run("import", ".")
    assert refused.code == 1
    assert "already exists" in refused.err
    assert run("import", ".", "--force").code == 0


@pytest.mark.spec("FMT-13")
@pytest.mark.usefixtures("agents")
def test_reports(run: Run) -> None:
    report = run("import", ".", "--report", "json", "--dry-run").json
    (file,) = report["files"]
    assert file["format"] == "claude"
    assert file["cards"] == ["reviewer"]
    assert {"name", "description", "tools"} <= set(file["mapped"])
    assert "color" in file["reported"]
    assert report["written"] == []
    assert report["planned"] == [".fast-agent/agent-cards/reviewer.md"]
    assert {one["code"] for one in report["diagnostics"]} >= {"FA831"}
    text = run("import", ".", "--report", "md", "--dry-run").out
    assert "## .claude/agents/reviewer.md" in text
    assert "line 5: `color` has no counterpart" in text


def test_wrong_input(run: Run) -> None:
    assert run("import").code == 2
    missing = run("import", "nowhere")
    assert (missing.code, "`nowhere` does not exist" in missing.err) == (1, True)
    Path("notes.md").write_text("# Notes\n")
    assert "--from claude" in run("import", "notes.md").err
    forced = run("import", "notes.md", "--from", "claude", "--report", "json", "--dry-run")
    assert json.loads(forced.out)["files"][0]["cards"] == ["notes"]
    Path(".codex/agents").mkdir(parents=True)
    Path(".codex/agents/a.toml").write_text('name = "a\n')
    broken = run("import", ".codex")
    assert broken.code == 1
    assert "FA835" in broken.err
    assert "everything was there already" not in broken.err


@pytest.mark.spec("FMT-14")
@pytest.mark.usefixtures("agents")
def test_cards_are_exported(run: Run) -> None:
    run("import", ".")
    dry = run("export", "--to", "codex", "--dry-run")
    assert "would write .codex/agents/reviewer.toml" in dry.out
    assert not Path(".codex").exists()
    assert run("export", "--to", "codex").code == 0
    assert 'developer_instructions = "Review."' in Path(".codex/agents/reviewer.toml").read_text()
    report = run("export", "--to", "codex", "--report", "json", "--force").json
    assert report["format"] == "codex"
    assert report["written"] == report["planned"] == [".codex/agents/reviewer.toml"]
    text = run("export", "--to", "claude", "--report", "md", "--dry-run").out
    assert text.startswith("# Export to claude\n\n1 files would be written.\n")
    again = run("export", "--to", "codex")
    assert (again.code, "already exists" in again.err) == (1, True)
    assert run("export", "--to", "codex", "--force").code == 0
    assert run("export", "--to", "nothing").code == 2
    assert run("export", "nowhere", "--to", "claude").codes == ["FA131"]


@pytest.mark.usefixtures("agents")
def test_nothing_is_written_through_links_of_a_project(run: Run, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert run("import", ".claude", "--output", "cards").code == 0
    for place in (".fast-agent", ".codex"):
        Path(place).symlink_to(outside)
    for command in (("import", ".claude"), ("export", "cards", "--to", "codex")):
        done = run(*command)
        assert (done.code, "outside of this directory" in done.err) == (1, True)
        assert [*outside.iterdir()] == []
    # A link that stays inside is the project's own affair, and a directory that is named is meant.
    Path(".fast-agent").unlink()
    Path("ours").mkdir()
    Path(".fast-agent").symlink_to("ours")
    assert run("import", ".claude").code == 0
    assert Path("ours/agent-cards/reviewer.md").is_file()
    assert run("export", "cards", "--to", "codex", "--output", outside / "agents").code == 0
    assert (outside / "agents/reviewer.toml").is_file()


@pytest.mark.spec("FMT-16")
def test_names_for_annotations_of_portable_hooks(run: Run) -> None:
    Path("hooks.py").write_text(
        "from fast_agent.hooks import HookContext\n"
        "from fast_agent.hooks.hook_context import HookContext as Same\n"
        "from fast_agent.types import PromptMessageExtended, RequestParams\n\n\n"
        "async def shown(ctx: HookContext) -> None:\n"
        "    assert isinstance(ctx, Same)\n"
        "    assert isinstance(ctx.message, PromptMessageExtended)\n"
    )
    Path("a.md").write_text(
        "---\ntype: agent\ntool_hooks: {after_turn_complete: hooks.py:shown}\n---\nx\n"
    )
    assert run("go", "--card", "a.md", "--model", "passthrough", "--message", "hi").out == "hi\n"
    Path("b.md").write_text("---\ntype: agent\nsubagents: true\n---\nx\n")
    assert "write `agents`, or a card of type `smart`" in run("check", "b.md").err
