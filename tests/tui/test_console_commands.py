"""The commands of the terminal: those of the table, and the twins of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY, holding_tool, scripted

from fast_agent.commands.table import COMMANDS
from fast_agent.tui.input.keys import KEYS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard


@pytest.mark.spec("T-K3.2")
def test_every_key_has_a_command_that_does_the_same(project: Path, write_card: WriteCard) -> None:
    pipe = holding_tool(project)
    write_card("ann.md", "function_tools: [f.py:hold]")
    (project / "pager.sh").write_text("#!/bin/sh\ncat > paged\nread word < /dev/tty\n")
    (project / "pager.sh").chmod(0o755)
    paged = project / "paged"
    steps = {"text": "wait", "call": {"name": "hold"}}, {"text": "the end"}, {"text": "second"}
    environ = {"PAGER": str(project / "pager.sh")}
    with Terminal(
        *scripted(project, *steps), "--card", "ann.md", environ=environ, rows=60, columns=120
    ) as terminal:
        terminal.wait_for(READY)
        terminal.line("/help")
        terminal.wait_for("/exit: leave")
        helped = "\n".join(terminal.everything)
        for key in KEYS:
            assert f"/{key.twin[1:].split()[0]}" in helped, key
        terminal.line("/complete /permissions")
        terminal.wait_for("/permissions  ")
        terminal.line("go")
        terminal.wait_for_screen("hold")
        terminal.line("a later line")
        terminal.wait_for_screen("queued 1: a later line")
        terminal.line("/recall")
        terminal.wait_for_screen("> a later line")
        terminal.send("\x03")
        terminal.wait_for("— stopped")
        pipe.write_text("x")
        terminal.send("\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        terminal.line("/recall ltr line")
        terminal.wait_for_screen("> a later line")
        terminal.send("\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        for command in ("/transcript", "/details"):
            terminal.line(command)
            terminal.wait_until(paged.exists, command)
            shown = "go" if command == "/transcript" else "hold"
            terminal.wait_until(lambda shown=shown: shown in paged.read_text(), command)
            terminal.send("q\n")
            terminal.wait_for_screen(READY)
            paged.unlink()
        terminal.line("/redraw")
        terminal.wait_until(lambda: terminal.display[0] == ">", "the prompt at the top")
        assert any("— stopped" in row for row in terminal.everything)


@pytest.mark.spec("T-C0.1")
def test_help_and_completion_come_from_the_table(project: Path) -> None:
    with Terminal(*PASS, rows=100, columns=120) as terminal:
        terminal.wait_for(READY)
        terminal.line("/help")
        terminal.wait_for("/exit: leave")
        rows = "\n".join(terminal.everything)
        for name, command in COMMANDS.items():
            assert f"/{name}" in rows, name
            assert command.summary.split("`")[0][:16].strip() in rows, name
        terminal.send("/sessio")
        terminal.wait_for_screen("  /session  list, start")
