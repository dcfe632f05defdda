"""`fast-agent diff`: card sets, conversations and runs, as text, JSON and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

_CARD = "---\nname: {}\nmodel: passthrough\n{}---\n{}\n"
_CHANGES = """\
--- old  3 agents
+++ new  3 agents
1 added, 1 removed, 1 changed

- gone
  -type: agent
  -model: passthrough
  -instruction: Answer.

~ lead
  -shell: true
   agents:
  -  - gone
  +  - fresh
   instruction:
     Lead.
  -  Be brief.
  +  Be clear.
  -effects:
  -  - run any command the model chooses

+ fresh
  +type: agent
  +model: passthrough
  +agents:
  +  - same
  +instruction: Answer.
"""
GO = ("go", "--model", "passthrough", "--quiet")


def write(path: Path, name: str, fields: str = "", instruction: str = "Answer.") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(_CARD.format(name, fields, instruction), "utf-8")


def _delimited(*said: str) -> str:
    roles = ("USER", "ASSISTANT")
    return "".join(f"---{roles[at % 2]}\n{text}\n" for at, text in enumerate(said))


@pytest.fixture(name="sets")
def _sets(project: Path) -> None:
    write(project / "old/lead.md", "lead", "shell: true\nagents: [gone]\n", "Lead.\nBe brief.")
    write(project / "old/gone.md", "gone")
    write(project / "old/same.md", "same")
    write(project / "new/lead.md", "lead", "agents: [fresh]\n", "Lead.\nBe clear.")
    write(project / "new/fresh.md", "fresh", "agents: [same]\n")
    write(project / "new/same.md", "same")


@pytest.mark.spec("T-V1.1")
@pytest.mark.usefixtures("sets")
def test_card_sets_show_fields_instruction_effects_and_agents(run: Run) -> None:
    done = run("diff", "old", "new")
    assert done.code == 0
    assert done.out == _CHANGES


@pytest.mark.spec("T-V1.1")
@pytest.mark.usefixtures("sets")
def test_the_same_set_has_no_differences(run: Run) -> None:
    done = run("diff", "old", "old", "--exit-code")
    assert (done.code, done.out.splitlines()[-1]) == (0, "no differences")
    assert run("diff", "old", "new", "--exit-code").code == 1


@pytest.mark.spec("T-V1.3")
@pytest.mark.usefixtures("sets")
def test_json_holds_the_members_that_differ(run: Run) -> None:
    facts = run("diff", "old/lead.md", "new/lead.md", "--format", "json").json
    assert facts["kind"] == "cards"
    (change,) = facts["changes"]
    assert (change["name"], change["change"]) == ("lead", "changed")
    assert change["before"]["shell"] is True
    assert "model" not in change["before"]
    assert change["after"]["agents"] == ["fresh"]


@pytest.mark.spec("T-V1.4")
def test_a_picture_marks_agents_even_where_references_turned_round(run: Run, project: Path) -> None:
    write(project / "old/a.md", "a", "agents: [b]\n")
    write(project / "old/b.md", "b")
    write(project / "new/a.md", "a")
    write(project / "new/b.md", "b", "agents: [a]\n")
    write(project / "new/c.md", "c")
    picture = run("diff", "old", "new", "--format", "svg").out
    root = ET.fromstring(picture)
    kinds = [one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds[1:] == ["box changed", "box changed", "box added"]
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("changed") == 2


@pytest.mark.spec("T-V1.2")
def test_sessions_show_messages_and_tokens(run: Run) -> None:
    run(*GO, "-m", "one", "--session")
    (first,) = (one["id"] for one in run("session", "list", "--format", "json").json)
    run("go", "--model", "passthrough", "--resume", first, "-m", "two")
    other = run("session", "fork", first, "--at", "1").out.strip()
    run("go", "--model", "passthrough", "--resume", other, "-m", "one two three")
    lines = run("diff", first, other).out.splitlines()
    assert lines[:3] == [f"--- {first}  4 messages", f"+++ {other}  4 messages", "2 changed"]
    assert lines[4:7] == ["~ turn 2, message 1, you", "  -text: two", "  +text: one two three"]
    assert "tokens by turn, with all it started:" in lines
    bars = [line.split() for line in lines if line.endswith("#")]
    assert [(bar[0], bar[1]) for bar in bars] == [("-", "1"), ("+", "1"), ("-", "2"), ("+", "2")]
    assert len(bars[2][-1]) < len(bars[3][-1]) == 40


@pytest.mark.spec("T-V1.2")
def test_an_inserted_message_does_not_move_the_others(run: Run, project: Path) -> None:
    said = ("one", "1", "two", "2")
    (project / "b.txt").write_text(_delimited("zero", "0", *said))
    (project / "a.txt").write_text(_delimited(*said))
    facts = run("diff", "a.txt", "b.txt", "--format", "json").json
    assert [(one["change"], one["after"]) for one in facts["changes"]] == [
        ("added", {"text": "zero"}),
        ("added", {"text": "0"}),
    ]


@pytest.mark.spec("T-V1.2")
def test_recordings_show_questions_and_answers(run: Run) -> None:
    run(*GO, "-m", "one", "--record", "a.jsonl")
    run(*GO, "-m", "one two", "--record", "b.jsonl")
    facts = run("diff", "a.jsonl", "b.jsonl", "--format", "json").json
    (change,) = facts["changes"]
    assert change["name"] == "agent: model 1"
    assert change["after"]["gave"]["message"]["content"][0]["text"] == "one two"


@pytest.mark.spec("T-V1.2")
def test_runs_of_a_batch_are_compared_by_their_ids(run: Run, project: Path) -> None:
    (project / "items.jsonl").write_text('"one"\n"two"\n')
    write(project / "clerk.md", "clerk")
    batch = ("--card", "clerk.md", "--input", "items.jsonl", "--output", "out.jsonl")
    assert run("batch", *batch).code == 0
    first, second = (one["id"] for one in run("runs", "list", "--json").json)
    out = run("diff", first, second).out
    assert "~ clerk: model 1" in out


def test_what_cannot_be_compared_is_refused(run: Run, project: Path) -> None:
    write(project / "clerk.md", "clerk")
    run(*GO, "-m", "one", "--record", "a.jsonl")
    (project / "notes.txt").write_text("some notes\n")
    refused = run("diff", "clerk.md", "a.jsonl")
    assert refused.code == 2
    assert "`clerk.md` has agents and `a.jsonl` has steps" in refused.err
    missing = run("diff", "clerk.md", "20991231")
    assert missing.code == 1
    assert "there is no file, session or run `20991231`" in missing.err
    assert "neither a card, a history nor a recording" in run("diff", "notes.txt", "clerk.md").err
    assert run("diff", "a.jsonl", "a.jsonl", "--format", "svg").code == 2


@pytest.mark.usefixtures("sets")
def test_a_set_with_a_file_that_cannot_be_read_is_not_compared(run: Run, project: Path) -> None:
    (project / "set").mkdir()
    (project / "set/good.md").write_text("---\nname: good\n---\nx\n")
    (project / "set/bad.md").write_text("---\nname: [bad\n---\nx\n")
    done = run("diff", "set", "set/good.md")
    assert (done.code, done.out, done.codes) == (1, "", ["FA110"])


def test_control_characters_are_visible(run: Run, project: Path) -> None:
    write(project / "new/gone.md", "gone", "", "Answer \x1b[2J.")
    out = run("diff", "old/gone.md", "new/gone.md").out
    assert "\x1b" not in out
