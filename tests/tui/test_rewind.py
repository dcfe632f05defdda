"""Rewinding at a terminal: turns, the files they wrote, and the way back."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY

if TYPE_CHECKING:
    from pathlib import Path

_END = re.compile(r"\d+\.\d s · ")


def _write(path: str, content: str) -> str:
    return f"***CALL_TOOL write_file {json.dumps({'path': path, 'content': content})}"


def _say(terminal: Terminal, text: str) -> None:
    """Send a message, and wait for the end of the turn."""
    before = _ended_turns(terminal)
    terminal.line(text)
    terminal.wait_until(lambda: _ended_turns(terminal) > before, "the end of the turn")
    terminal.wait_for_screen(READY)


def _ended_turns(terminal: Terminal) -> int:
    return sum(bool(_END.match(row)) for row in terminal.everything)


@pytest.mark.spec("T-W2.1")
def test_an_edit_shows_its_difference(project: Path) -> None:
    notes = project / "notes.txt"
    notes.write_text("one\ntwo\n", encoding="utf-8")
    with Terminal(*PASS, "--files", "write", rows=30) as terminal:
        terminal.wait_for(READY)
        terminal.line(_write("notes.txt", "one\n2\n"))
        terminal.wait_for_screen("answer with 1-")
        # The question shows the difference before anything is written.
        assert any(row.startswith("│ -two") for row in terminal.display)
        assert any(row.startswith("│ +2") for row in terminal.display)
        assert notes.read_text("utf-8") == "one\ntwo\n"
        terminal.send("y")
        terminal.wait_for("✓ write_file notes.txt  +1 -1", "   -two", "   +2")
        long = "".join(f"line {number}\n" for number in range(60))
        terminal.line(_write("notes.txt", long[:-1]))
        terminal.wait_for_screen("answer with 1-")
        terminal.send("y")
        terminal.wait_for("more lines, Ctrl-O")
        assert not any("line 59" in row for row in terminal.everything if row.startswith("   +"))


@pytest.mark.spec("T-H2.1", "T-H2.2", "T-H3.1")
def test_a_rewind_restores_files_and_undo_reverses_it(project: Path) -> None:
    kept, fresh = project / "kept.txt", project / "fresh.txt"
    kept.write_text("before", encoding="utf-8")
    with Terminal(*PASS, "--files", "write", rows=40, columns=100) as terminal:
        terminal.wait_for(READY)
        terminal.line("/permissions trusting")
        terminal.wait_for_screen("· trusting ·")
        _say(terminal, "hello there")
        _say(terminal, _write("kept.txt", "changed"))
        assert kept.read_text("utf-8") == "changed"
        _say(terminal, _write("fresh.txt", "new"))
        assert fresh.read_text("utf-8") == "new"
        terminal.send("\x1b\x1b")
        terminal.wait_for_screen("1 (now) change nothing")
        terminal.wait_for_screen("answer with 1-4")
        terminal.send("\r")  # the first entry is chosen, and changes nothing
        terminal.wait_for("nothing was taken back")
        assert fresh.exists()
        terminal.line("/history rewind 2")
        terminal.wait_for_screen("restore kept.txt")
        terminal.wait_for_screen("remove fresh.txt")
        terminal.wait_for_screen("answer with 1-4")
        terminal.send("f")
        terminal.wait_for("2 turns taken back, 2 files restored")
        assert kept.read_text("utf-8") == "before"
        assert not fresh.exists()
        # The message that was taken back is in the editor again.
        terminal.wait_until(
            lambda: any(row.startswith("> ***CALL_TOOL") for row in terminal.display), "the message"
        )
        terminal.send("\x03")
        terminal.line("/undo")
        terminal.wait_for("restored the turns and 2 files")
        assert (kept.read_text("utf-8"), fresh.read_text("utf-8")) == ("changed", "new")
        terminal.line("/undo")
        terminal.wait_for("there is no rewind to undo")
        terminal.line("/history rewind 3")
        terminal.wait_for_screen("3 turns of")


@pytest.mark.spec("T-H2.2", "T-H3.1")
def test_a_file_that_something_else_changed_stays_as_it_is(project: Path) -> None:
    kept = project / "kept.txt"
    kept.write_text("before", encoding="utf-8")
    with Terminal(*PASS, "--files", "write", rows=40, columns=100) as terminal:
        terminal.wait_for(READY)
        terminal.line("/permissions trusting")
        terminal.wait_for_screen("· trusting ·")
        _say(terminal, _write("kept.txt", "changed"))
        assert kept.read_text("utf-8") == "changed"
        terminal.send("\x04")
        assert terminal.wait() == 0
    # What files held outlives the program.
    with Terminal(*PASS, "--files", "write", "--resume", rows=40, columns=100) as terminal:
        terminal.wait_for(READY)
        kept.write_text("by hand", encoding="utf-8")
        terminal.line("/history rewind 1")
        terminal.wait_for_screen("kept.txt: stays as it is (changed since)")
        terminal.wait_for_screen("answer with 1-3")  # files are not offered
        terminal.send("t")
        terminal.wait_for("1 turn taken back; /undo reverses this")
        assert kept.read_text("utf-8") == "by hand"
        terminal.send("\x03")
        _say(terminal, "and now something else")
        terminal.line("/undo")
        terminal.wait_for("the conversation continued after it")


@pytest.mark.spec("T-H2.1", "T-H4.1")
def test_a_rewind_may_fork(project: Path) -> None:
    with Terminal(*PASS, rows=40, columns=100) as terminal:
        terminal.wait_for(READY)
        for text in ("first words", "second words"):
            _say(terminal, text)
        terminal.send("\x1b\x1b")
        terminal.wait_for_screen("second words")
        terminal.wait_for_screen("answer with 1-3")
        terminal.send("2")
        terminal.wait_for_screen("1 turn of agent")
        terminal.wait_for_screen("answer with 1-3")
        terminal.send("k")
        terminal.wait_for("which stays as it is")
        terminal.wait_for_screen("⑂ agent")
        terminal.line("/session list")
        terminal.wait_for("2 turns: first words", "1 turn: first words")


@pytest.mark.spec("T-H2.1")
def test_a_rewind_puts_back_what_was_typed(project: Path) -> None:
    (project / "notes.txt").write_text("of the file\n", encoding="utf-8")
    with Terminal(*PASS, rows=40, columns=100) as terminal:
        terminal.wait_for(READY)
        terminal.line("!echo of the command")
        terminal.wait_for("the next message includes this")
        _say(terminal, "look at @notes.txt now")
        terminal.line("/history rewind 1")
        terminal.wait_for_screen("answer with 1-3")
        assert not any("of the file" in row for row in terminal.display if row.startswith("│"))
        terminal.send("t")
        terminal.wait_for_screen("> look at @notes.txt now")
        terminal.wait_for_screen("1 turn taken back")
        rows = terminal.display
        assert not any("</file>" in row for row in rows[rows.index("> look at @notes.txt now") :])
