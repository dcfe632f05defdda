"""What is in the editor outlives a crash."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import scripted

from fast_agent.sessions.store import SessionStore
from fast_agent.tui.input.draft import Draft

if TYPE_CHECKING:
    from pathlib import Path

READY = "? for keys"
PASS = ("go", "--model", "passthrough")


@pytest.mark.spec("T-S5.2", "T-H1.1")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_draft_is_back_after_a_crash(
    project: Path, tmp_path: Path, number: signal.Signals
) -> None:
    drafts = tmp_path / "home" / "drafts"

    def kept() -> bool:
        found = list(drafts.glob("*.txt"))
        return bool(found) and found[0].read_text("utf-8") == "half a thought\nand more"

    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("say one")
        terminal.wait_for(" out")
        terminal.send("half a thought\x1b\rand more")
        terminal.wait_until(kept, "the draft")
        assert next(drafts.iterdir()).stat().st_mode & 0o077 == 0
        terminal.process.send_signal(number)
        terminal.wait()
    with Terminal(*PASS, "--resume") as terminal:
        terminal.wait_for("say one", "is in the editor again")
        terminal.wait_for_screen("> half a thought")
        terminal.wait_for_screen("  and more")
        terminal.send("\r")
        terminal.wait_for(" out")
        terminal.wait_until(lambda: not any(drafts.iterdir()), "no draft")


def test_a_draft_of_a_process_that_runs_is_left_to_it(tmp_path: Path) -> None:
    here, other = Draft(tmp_path, "/work", 1), Draft(tmp_path, "/elsewhere", 2**22 + 1)
    Draft(tmp_path, "/work", os.getppid()).keep("of another terminal")
    other.keep("of another directory")
    assert here.take_left() == ""
    Draft(tmp_path, "/work", 2**22 + 2).keep("of a crash")
    assert here.take_left() == "of a crash"
    assert here.take_left() == ""
    here.keep("x" * 1_000_000)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_message_that_was_sent_is_not_a_draft(project: Path, tmp_path: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("say one")
        terminal.wait_for(" out")
        terminal.wait_for_screen(READY)
        terminal.send("\x04")
        assert terminal.wait() == 0
    assert not list((tmp_path / "home/drafts").glob("*.txt"))


def test_a_draft_is_not_sent_together_with_what_is_typed_ahead(
    project: Path, tmp_path: Path
) -> None:
    drafts = Draft(tmp_path / "home/drafts", str(project), 2**22 + 2)
    with Terminal(*PASS, "--session", "-m", "before") as terminal:
        assert terminal.wait() == 0
    drafts.keep("of a crash")
    with Terminal(*PASS, "--resume") as terminal:
        terminal.send("typed ahead\r")
        terminal.wait_for(" out")
        assert any(row == "typed ahead" for row in terminal.everything)
        terminal.wait_for_screen(READY)
        terminal.wait_for("is in the history")
        terminal.send("\x1b[A\x1b[A")
        terminal.wait_for_screen("> of a crash")


@pytest.mark.spec("T-Q3.2")
def test_the_queue_is_back_after_a_crash(project: Path, tmp_path: Path) -> None:
    steps = {"text": "first"}, {"text": "never", "delay": 3600}
    with Terminal(*scripted(project, *steps)) as terminal:
        terminal.wait_for(READY)
        terminal.line("one")
        terminal.wait_for("first", " out")
        terminal.line("two")
        terminal.wait_for_screen("stop")
        for number, text in enumerate(("three", "/nonsense", "four"), 1):
            terminal.line(text)
            terminal.wait_for_screen(f"queued {number}: {text}")
        terminal.line("/queue drop 2")
        terminal.wait_for_screen("queued 2: four")
        drafts = tmp_path / "home/drafts"
        terminal.wait_until(lambda: not any(drafts.glob("*.txt")), "an empty draft")
        terminal.process.kill()
        terminal.wait()
    with Terminal(*PASS, "--resume") as terminal:
        terminal.wait_for("2 messages wait from before")
        terminal.wait_for_screen("parked 2: four")
        terminal.send("\r")
        terminal.wait_until(lambda: terminal.everything.count("four") >= 2, "the answer")
        terminal.wait_for_screen(READY)
        terminal.process.kill()
        terminal.wait()
    store = SessionStore(tmp_path / "home")
    (found,) = store.list()
    _, state = store.read(found.id)
    assert (len(state.turns), state.queue) == (4, ())


@pytest.mark.spec("T-Q3.2")
def test_the_queue_stays_when_turns_are_taken_back(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    with store.create(cwd=tmp_path) as session:
        session.keep_queue(["one", "two\ud800"])
        session.rewind(0)
        taken = session.events_after(0)
    assert taken == []
    with store.open(session.id) as session:
        assert session.queue == ("one", "two\ud800")
        session.keep_queue([])
    with store.open(session.id) as session:
        assert session.queue == ()
        with store.create(cwd=tmp_path) as fresh:
            assert fresh.queue == ()


@pytest.mark.spec("T-Q3.2")
def test_a_line_is_kept_before_its_turn_has_started(project: Path, tmp_path: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "openai").mkdir()
    (project / "openai/__init__.py").write_text(  # the turn waits for this import
        "from pathlib import Path\nPath('asked').touch()\nPath('pipe').read_text()\n"
    )
    environ = {
        "PYTHONPATH": str(project),
        "GENERIC_BASE_URL": "http://127.0.0.1:9/v1",
        "GENERIC_API_KEY": "none",
    }
    with Terminal("go", "--model", "generic.m", environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("one")
        terminal.wait_until((project / "asked").exists, "an import that waits")
        terminal.line("two")
        terminal.wait_for_screen("queued 1: two")
        terminal.process.kill()
        terminal.wait()
    store = SessionStore(tmp_path / "home")
    (found,) = store.list()
    assert store.read(found.id)[1].queue == ("one", "two")
