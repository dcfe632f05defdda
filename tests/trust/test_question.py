"""The question: its text to the letter, who may answer it, and what counts as a yes."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import termios
from dataclasses import replace
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.trust.approvals import Approvals, ApprovalStatus
from fast_agent.trust.effect import Effect, Holder
from fast_agent.trust.found_set import FoundSet
from fast_agent.trust.question import (
    TerminalAsker,
    as_json,
    by_trust,
    effect_lines,
    file_lines,
    refusal,
    render_question,
)

if TYPE_CHECKING:
    from fast_agent.trust.effect import EffectKind, HolderKind

CONFIG = "fastagent.config.yaml"
DOWNLOADS = "downloads and runs whatever is newest at every start"


def effect(kind: EffectKind, subject: str, name: str, path: str, line: int, *notes: str) -> Effect:
    holder: HolderKind = "card" if path.endswith(".md") else "server"
    return Effect(kind, subject, Holder(holder, name), path, line, notes=notes)


EFFECTS = (
    effect("send", "ACME_TOKEN to https://docs.acme.com", "docs", CONFIG, 16),
    effect("run", "uvx mcp-server-time==2026.1.1", "time", CONFIG, 4),
    effect("run", "npx -y @acme/tickets", "tickets", CONFIG, 12, DOWNLOADS),
    effect("run", "any command the model chooses", "builder", "builder.md", 5),
)
MODELS = {f"card{at}": "sonnet" if at < 5 else "haiku" for at in range(10)}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> FoundSet:
    monkeypatch.setenv("HOME", "/home/me")
    return FoundSet(Path("/home/me/src/desk"), {CONFIG: "sha256:0"}, EFFECTS, models=MODELS)


@pytest.mark.spec("TR-Q1.2")
def test_a_new_set_is_asked_about_as_a_whole_with_run_first(found: FoundSet) -> None:
    assert render_question(found, ApprovalStatus("new", added=EFFECTS)) == (
        "`~/src/desk` wants to act on this machine. "
        "It came with the project; nothing of it has run.\n"
        "  run      uvx mcp-server-time==2026.1.1               server `time`, "
        "fastagent.config.yaml:4\n"
        "           npx -y @acme/tickets                        server `tickets`, "
        "fastagent.config.yaml:12\n"
        "           ! downloads and runs whatever is newest at every start\n"
        "           any command the model chooses               `builder`, builder.md:5\n"
        "  send     ACME_TOKEN to https://docs.acme.com         server `docs`, "
        "fastagent.config.yaml:16\n"
        "10 cards talk to models with your keys: sonnet, haiku.\n"
    )


@pytest.mark.spec("TR-Q1.2")
@pytest.mark.parametrize("columns", [50, 60, 80, 93])
def test_a_narrow_terminal_shows_places_below_their_subjects(found: FoundSet, columns: int) -> None:
    forged = effect("run", f"echo {'x' * 90} {' ' * 60}  connect  https://a.b", "z", CONFIG, 9)
    lines = render_question(
        found, ApprovalStatus("new", added=(*EFFECTS, forged)), columns=columns
    ).splitlines()
    assert all(len(line) <= columns or "x" * 90 in line for line in lines)
    assert sum("x" * 90 in line for line in lines) == 1
    effects = lines[next(at for at, line in enumerate(lines) if line.startswith("  run")) : -1]
    assert effects[1].strip() == "server `time`, fastagent.config.yaml:4"
    kinds = [line.split()[0] for line in effects if not line.startswith(" " * 11)]
    assert kinds[:2] == ["run", "send"]
    assert "connect" not in kinds


@pytest.mark.spec("TR-F4.1b")
def test_the_owner_of_strange_files_is_named(found: FoundSet) -> None:
    text = render_question(replace(found, owner="eve"), ApprovalStatus("new", added=EFFECTS))
    assert "Its files belong to the user `eve`." in text.splitlines()[0]


@pytest.mark.spec("TR-Q2.3", "TR-A2.2")
def test_a_changed_set_shows_the_difference_alone(found: FoundSet) -> None:
    standing = ApprovalStatus(
        "changed",
        added=(EFFECTS[0],),
        gone=(EFFECTS[1],),
        rewritten=("builder.md",),
        since=date(2026, 5, 3),
    )
    lines = render_question(found, standing).splitlines()
    assert lines[0] == "`~/src/desk` changed since 3 May:"
    assert [line[0] for line in lines[1:4]] == ["+", "-", "~"]
    assert "ACME_TOKEN" in lines[1]
    assert "mcp-server-time" in lines[2]
    assert "builder.md" in lines[3]
    assert "`builder`" in lines[3]
    assert "tickets" not in "".join(lines)
    assert lines[-1] == "Yours? `fast-agent trust --own` stops asking here"


@pytest.mark.spec("TR-Q2.3")
def test_a_program_whose_files_changed_is_shown_once_with_them(found: FoundSet) -> None:
    before = replace(EFFECTS[1], files={"a.py": "1", "b.py": "1", "d.py": "1"})
    absent = {"uv.lock": "absent", "uv.toml": "absent"}
    now = replace(EFFECTS[1], files={"a.py": "1", "b.py": "2", "c.py": "1", **absent})
    standing = ApprovalStatus("changed", added=(now,), gone=(before,), since=date(2026, 5, 3))
    assert render_question(found, standing).splitlines()[1:6] == [
        f"~ run      {'uvx mcp-server-time==2026.1.1':<43} server `time`, {CONFIG}:4",
        "           ! b.py changed",
        "           ! c.py is new",
        "           ! d.py is no longer among its files",
        "           ! it covers files that are not there yet, such as uv.lock",
    ]


@pytest.mark.spec("TR-Q1.2")
def test_after_forty_lines_there_is_a_count() -> None:
    many = [effect("run", f"program {at}", "x", CONFIG, at) for at in range(41)]
    assert len(effect_lines(many[:40])) == 40
    lines = effect_lines(many)
    assert len(lines) == 41
    assert "and 1 more" in lines[-1]


@pytest.mark.spec("TR-T1.3")
def test_nothing_in_a_question_steers_the_terminal(found: FoundSet) -> None:
    hostile = "a\x1b]52;c;eA==\x07\x1b[2J\r\u202eb\u200bc\x9b1m"
    strange = Effect("run", hostile, Holder("card", hostile), hostile, 1, notes=(hostile,))
    text = render_question(replace(found, owner=hostile), ApprovalStatus("new", added=(strange,)))
    lines = text.split("\n")
    assert len(lines) == 5
    hostile += chr(10)
    strange = Effect("run", hostile, Holder("card", hostile), hostile, 1)
    assert len(refusal(found, [strange], agent=hostile).message.splitlines()) == 2
    assert all(line.isprintable() for line in lines)
    assert all(line.isprintable() for line in file_lines(replace(found, texts={hostile: hostile})))


@pytest.mark.spec("TR-Q3.1")
def test_where_nobody_can_be_asked_the_error_says_everything(found: FoundSet) -> None:
    found = replace(found, root=Path("/srv/desk"))
    error = refusal(found, EFFECTS[:1], agent="lead")
    assert (error.status, error.code) == (3, "FA801")
    assert error.message == (
        "`lead` of `/srv/desk` may not act yet; nothing was started\n"
        "  send     ACME_TOKEN to https://docs.acme.com         server `docs`, "
        "fastagent.config.yaml:16"
    )
    assert error.hint is not None
    assert f"FAST_AGENT_TRUST={found.digest} (exactly this set)" in error.hint
    assert "`fast-agent trust /srv/desk`" in error.hint
    assert "`--no-found`" in error.hint
    assert len(found.digest) == len("sha256:") + 64


def test_what_nothing_allows_has_another_remedy_than_trust(found: FoundSet) -> None:
    refused = replace(EFFECTS[0], refusal="`docs` is not on `PATH`")
    assert refusal(found, [refused], agent=None).hint == (
        "correct what `!` marks: no approval allows it;\n      `--no-found` continues without it"
    )
    mixed = refusal(found, [refused, EFFECTS[1]], agent=None)
    assert "`fast-agent trust" in (mixed.hint or "")
    assert by_trust(["lead"], [refused, EFFECTS[1]]).endswith(": run 1")


@pytest.mark.spec("TR-Q5.2")
@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["lead"], "by --trust `lead` acts in this run: run 3, send 1"),
        (["lead", "kid"], "by --trust `lead` and 1 other act in this run: run 3, send 1"),
        (["lead", *"abcdefghi"],
         "by --trust `lead` and 9 others act in this run: run 3, send 1"),
    ],
)  # fmt: skip
def test_what_trust_let_act_is_said(names: list[str], line: str) -> None:
    assert by_trust(names, EFFECTS) == line


@pytest.mark.spec("TR-Q1.3")
def test_everything_can_be_had_as_json(found: FoundSet) -> None:
    whole = as_json(found, ApprovalStatus("changed", allowed=frozenset(EFFECTS[:1])))
    assert whole["digest"] == found.digest
    effects = whole["effects"]
    assert isinstance(effects, list)
    assert len(effects) == 4
    first = effects[0]
    assert isinstance(first, dict)
    assert first["allowed"] is True
    assert first["subject"] == "ACME_TOKEN to https://docs.acme.com"


@pytest.mark.spec("TR-Q1.3")
def test_the_files_are_shown_whole_or_as_what_changed(tmp_path: Path) -> None:
    def one(text: str) -> FoundSet:
        digest = f"sha256:{sha256(text.encode()).hexdigest()}"
        return FoundSet(tmp_path.resolve(), {"a.md": digest}, texts={"a.md": text})

    approvals = Approvals(tmp_path / "home")
    assert list(file_lines(one("x\ny"), approvals)) == ["--- a.md", "  x", "  y"]
    approvals.approve(one("x\ny"))
    assert list(file_lines(one("x\nz"), approvals)) == [
        "--- a.md", "  @@ -1,2 +1,2 @@", "   x", "  -y", "  +z",
    ]  # fmt: skip
    assert list(file_lines(one("x\ny"), approvals)) == ["--- a.md", "  (as approved)"]


def test_the_python_files_of_an_effect_are_shown_too(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("print(1)\n")
    runs = replace(EFFECTS[1], files={"tools.py": "sha256:1", "gone.py": "absent"})
    assert list(file_lines(FoundSet(tmp_path, effects=(runs,)))) == ["--- tools.py", "  print(1)"]


@pytest.mark.spec("TR-Q2.2b")
@pytest.mark.parametrize(
    ("typed", "reply"),
    [("y\n", "always"), ("Y \n", "always"), ("o\n", "once"), ("n\n", "no"), ("\n", "no"),
     ("yes\n", "no"), ("ok\n", "no"), ("1\n", "no"), ("", "no"), ("v\ny\n", "always"),
     ("v\nv\n\n", "no"), ("yy\n", "no"), ("\x1b[Ay\n", "no")],
)  # fmt: skip
def test_only_y_and_o_are_a_yes(found: FoundSet, tmp_path: Path, typed: str, reply: str) -> None:
    shown = io.StringIO()
    asker = TerminalAsker(Approvals(tmp_path), io.StringIO(typed), shown)
    assert asker(found, ApprovalStatus("new", added=EFFECTS)) == reply
    assert shown.getvalue().count("Let it?") == 1 + typed.count("v\n")


ASK = """
import sys, termios
from pathlib import Path
from fast_agent.trust.approvals import Approvals, ApprovalStatus
from fast_agent.trust.found_set import FoundSet
from fast_agent.trust.question import TerminalAsker
asker = TerminalAsker(Approvals(Path(sys.argv[1])), sys.stdin, sys.stderr)
if not asker.can_ask:
    sys.exit(9)
print("ready", flush=True)
sys.stdin.readline()
reply = asker(FoundSet(Path("/x")), ApprovalStatus("new"))
print(f"reply={reply}", flush=True)
"""


def read_until(descriptor: int, text: str) -> str:
    seen = ""
    while text not in seen:
        seen += os.read(descriptor, 4_096).decode()
    return seen


@pytest.mark.spec("TR-Q2.2a")
def test_what_was_typed_before_the_question_never_answers_it(tmp_path: Path) -> None:
    control, terminal = pty.openpty()
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    with subprocess.Popen(
        [sys.executable, "-c", ASK, str(tmp_path)], stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        read_until(control, "ready")
        os.write(control, b"go\ny\ny\n")
        read_until(control, "n no (default) ")
        os.write(control, b"n\n")
        assert "reply=no" in read_until(control, "\n")
        assert process.wait() == 0
    os.close(control)


@pytest.mark.spec("TR-Q2.1")
@pytest.mark.parametrize("missing", ["stdin", "stderr"])
def test_nobody_is_asked_without_two_terminals(tmp_path: Path, missing: str) -> None:
    control, terminal = pty.openpty()
    null = subprocess.DEVNULL
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path)],
        stdin=null if missing == "stdin" else terminal,
        stdout=null,
        stderr=null if missing == "stderr" else terminal,
    )
    assert done.returncode == 9
    os.close(control)
    os.close(terminal)
