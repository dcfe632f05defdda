"""`fast-agent go --session`, `--resume`, and `fast-agent session`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.messages.file import read_history

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]

GO = ("go", "--model", "passthrough", "--quiet")


def ids(run: Run) -> list[str]:
    return [one["id"] for one in run("session", "list", "--format", "json").json]


@pytest.mark.spec("SESSION-13")
def test_a_run_is_kept_only_where_that_is_asked(run: Run) -> None:
    assert run(*GO, "-m", "hello").out == "hello\n"
    assert run("session").out == "there are no sessions; `fast-agent go --session` starts one\n"
    done = run("go", "--model", "passthrough", "-m", "hello", "--session")
    assert done.out == "hello\n"
    (kept,) = ids(run)
    assert done.err == f"kept as session `{kept}`; `--resume` continues it\n"


def test_resume_goes_on_with_the_newest_of_the_directory_or_the_one_named(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*GO, "-m", "one", "--session")
    (first,) = ids(run)
    other = project / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    refused = run(*GO, "--resume", "-m", "x")
    assert (refused.code, refused.out) == (1, "")
    assert "no session of this project began in this directory" in refused.err
    assert run(*GO, "--resume", first, "-m", "two").code == 0
    monkeypatch.chdir(project)
    assert run(*GO, "--resume", "-m", "three", "--results", "all.json").code == 0
    assert [m.text for m in read_history(project / "all.json").messages] == [
        *("one", "one", "two", "two", "three", "three")
    ]
    assert ids(run) == [first]


def test_in_another_process_too(spawn: Run, run: Run) -> None:
    spawn(*GO, "-m", "one", "--session")
    done = spawn(*GO, "--resume", "-m", "two", "--results", "all.json")
    assert (done.code, done.err) == (0, "")
    assert len(json.loads(Path("all.json").read_text())["messages"]) == 4


def test_resume_goes_on_with_the_agent_talked_to_last(run: Run, write_card: WriteCard) -> None:
    write_card("cards/ann.md", "default: true")
    write_card("cards/bob.md")
    run(*GO, "--card", "cards", "--agent", "bob", "-m", "one", "--session")
    done = run(*GO, "--card", "cards", "--resume", "-m", "two", "--format", "json")
    assert done.json["agent"] == "bob"
    done = run(*GO, "--card", "cards", "--resume", "--agent", "ann", "-m", "x", "--format", "json")
    assert done.json["agent"] == "ann"
    gone = run(*GO, "--resume", "-m", "three")
    assert gone.code == 1
    assert "with agent `ann`, which is not loaded" in gone.err
    assert run(*GO, "--resume", "--agent", "agent", "-m", "three").out == "three\n"


@pytest.mark.spec("SESSION-7", "SESSION-8")
def test_show_export_fork_rewind_rename_and_delete(run: Run, project: Path) -> None:
    run(*GO, "-m", "first line\nsecond", "--session")
    run(*GO, "--resume", "-m", "```\nfenced\n```")
    (kept,) = ids(run)
    shown = run("session", "show", kept[:-2])
    assert shown.out.splitlines()[2:4] == [
        "   1  agent: first line second",
        f"{'':6}first line second",
    ]
    facts = run("session", "show", kept, "--format", "json").json
    assert [turn["message"] for turn in facts["turns"]] == [
        *("first line\nsecond", "```\nfenced\n```")
    ]
    exported = run("session", "export", kept).out
    assert exported.startswith("# first line second\n")
    assert "## Turn 2: agent\n\n**User**\n\n```\nfenced\n```\n" in exported
    run("session", "export", kept, "--format", "json", "--output", "history.json")
    assert len(read_history(project / "history.json").messages) == 4
    run("session", "export", kept, "--format", "json", "--agent", "agnet").err.index("`agent`")
    assert run("session", "export", kept, "--agent", "agent").code == 2
    fork = run("session", "fork", kept, "--at", "1", "--title", "twig").out.strip()
    assert run("session", "show", fork, "--format", "json").json["forked_from"] == kept
    assert run("session", "rewind", kept, "1").out == ""
    assert len(run("session", "show", kept, "--format", "json").json["turns"]) == 1
    assert "there is no turn `7`" in run("session", "rewind", kept, "7").err
    run("session", "rename", kept, "trunk \x1b[31m")
    listed = run("session", "list").out
    assert "twig" in listed
    assert "trunk <U+001B>[31m" in listed
    assert run("session", "delete", kept, fork).code == 0
    assert ids(run) == []
    assert run("session", "show", kept).code == 1


def test_a_damaged_session_is_listed_as_such_and_told(run: Run, tmp_path: Path) -> None:
    run(*GO, "-m", "one", "--session")
    (kept,) = ids(run)
    file = tmp_path / "home" / "sessions" / f"{kept}.sqlite"
    file.write_bytes(b"nothing" * 999)
    assert "the file is damaged" in run("session", "list").out
    broken = run(*GO, "--resume", kept, "-m", "two")
    assert (broken.code, broken.out) == (1, "")
    assert "the file is damaged" in broken.err
    assert run("session", "delete", kept).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--session", "--resume", "-m", "x"), "--session starts a session"),
        (("--resume", "nobody", "-m", "x"), "there is no session `nobody`"),
        (("--resume", "../x", "-m", "x"), "there is no session"),
    ],
)
def test_wrong_use_is_reported(run: Run, options: tuple[str, ...], message: str) -> None:
    done = run(*GO, *options)
    assert (done.code != 0, done.out) == (True, "")
    assert message in done.err


@pytest.mark.spec("SESSION-19", "SESSION-20")
def test_a_damaged_session_is_reported_everywhere_and_what_is_whole_is_saved(
    run: Run, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        run(*GO, "-m", f"message {number}", *(("--session",) if number == 1 else ("--resume",)))
    (damaged,) = ids(run)
    path = tmp_path / "home" / "sessions" / f"{damaged}.sqlite"
    data = path.read_bytes()
    assert data.count(b"message 2") == 2
    path.write_bytes(data.replace(b"message 2", b"message 7"))
    named = "events 4-5 of 9 are damaged"
    hint = f"hint: `fast-agent session salvage {damaged}` starts a session with what is intact\n"
    for command in (
        (*GO, "--resume", "-m", "x"),
        ("session", "show", damaged),
        ("session", "export", damaged),
        ("session", "export", damaged, "--format", "json"),
        ("session", "fork", damaged),
    ):
        done = run(*command)
        assert (done.code, done.out) == (1, ""), command
        assert done.err.endswith(f"{named}\n{hint}"), command
    listed = run("session", "list").out
    assert " damaged" in listed
    assert named in listed
    saved = run("session", "salvage", damaged)
    assert saved.err == f"{named}; 1 turn was left out\n"
    shown = run("session", "show", saved.out.strip()).out
    assert "message 1" in shown
    assert "message 3" in shown
    assert "message 7" not in shown
    assert run(*GO, "--resume", saved.out.strip(), "-m", "four").code == 0
    whole = run("session", "salvage", saved.out.strip())
    assert whole.err == "no event is damaged; the new session has all of them\n"


def test_only_old_sessions_are_pruned(run: Run) -> None:
    run(*GO, "-m", "old", "--session")
    run(*GO, "-m", "new", "--session")
    assert run("session", "prune", "--older-than", "1h").out == "0 sessions deleted\n"
    assert len(ids(run)) == 2
    refused = run("session", "prune", "--older-than", "soon")
    assert refused.code == 2
    assert "write a number and s, m, h, d or w" in refused.err
    assert run("session", "prune", "--older-than", "0s").out == "2 sessions deleted\n"
    assert ids(run) == []


@pytest.mark.spec("T-U3.1")
def test_usage_by_agent_model_and_turn_is_that_of_the_log(run: Run, write_card: WriteCard) -> None:
    call = {"name": "agent__helper", "arguments": {"message": "three words here"}}
    script = {"steps": [{"calls": [call]}, {"text": "done"}]}
    Path("boss.yaml").write_text(json.dumps(script))
    write_card("boss.md", "default: true\nagents: [helper]\nmodel: scripted?file=boss.yaml")
    write_card("helper.md", "model: passthrough")
    go = ("go", "--card", "boss.md", "--card", "helper.md", "--quiet")
    assert run(*go, "-m", "one", "--session").code == 0
    (kept,) = ids(run)
    assert run(*go, "--resume", kept, "-m", "two").code == 0
    logged = run("session", "show", kept, "--format", "json").json["usage"]
    facts = run("usage", kept, "--format", "json").json
    assert facts["total"] == logged
    for part in ("agents", "models"):
        for count in ("input_tokens", "output_tokens", "requests", "tool_calls"):
            assert sum(one[count] for one in facts[part].values()) == logged[count]
    assert {name: one["requests"] for name, one in facts["agents"].items()} == {
        "boss": 4, "helper": 2,
    }  # fmt: skip
    assert set(facts["models"]) == {"scripted", "passthrough"}
    assert [one["requests"] for one in facts["turns"]] == [3, 3]
    text = run("usage", kept).out
    assert "by model:" in text
    assert "  2 boss" in text
    run(*GO, "-m", "another", "--session")
    both = run("usage", "--format", "json").json
    assert {one["id"] for one in both["sessions"]} == set(ids(run))
    assert both["total"]["requests"] == logged["requests"] + 1


def test_usage_without_sessions_says_so(run: Run) -> None:
    assert run("usage").out == "no session changed in the last 30 days\n"


@pytest.mark.parametrize(
    "command",
    [
        ("session",),
        ("session", "list"),
        ("session", "show", "1"),
        ("session", "delete", "1"),
        ("session", "prune", "--older-than", "1d"),
        ("usage",),
        ("diff", "1", "2"),
    ],
)
def test_commands_of_sessions_use_the_database_of_the_named_configuration(
    run: Run, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text("sessions: {url: 'postgres://me@127.0.0.1:1/kept'}\n")
    done = run(*command, "-c", tmp_path / "own.yaml")
    assert done.code == 1
    assert "database `postgres://me@127.0.0.1:1/kept`: it cannot be reached" in done.err
