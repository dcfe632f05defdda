"""Plain mode at a terminal: read line by line, and read aloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("T-A1.5")
def test_plain_mode_says_what_is_at_work(project: Path) -> None:
    with Terminal(*PASS, "--shell", "--plain", rows=60) as terminal:
        terminal.wait_for(READY)
        terminal.line('***CALL_TOOL execute {"command": "sleep 30; echo never"}')
        terminal.wait_for("permission required:")
        terminal.line("1")
        terminal.wait_for("at work for ", " s: execute")
        terminal.line("/stop")
        terminal.wait_for("stopped")


@pytest.mark.spec("T-A1.1", "T-A1.2", "T-A1.3", "T-A1.4")
@pytest.mark.parametrize("way", ["flag", "variable", "dumb"])
def test_plain_mode(project: Path, way: str) -> None:
    environ = {"variable": {"FAST_AGENT_PLAIN": "1"}, "dumb": {"TERM": "dumb"}}.get(way, {})
    flags = ("--plain",) if way == "flag" else ()
    call = '***CALL_TOOL execute {"command": "echo made > file"}'
    with Terminal(*PASS, "--shell", *flags, environ=environ, rows=60) as terminal:
        terminal.wait_for("[plain mode: on, ", READY)
        terminal.line("say **hello**")
        terminal.wait_for("you:", "agent:", "say hello", " out")
        terminal.line(call)
        asked = "permission required: agent `agent` asks to call `execute`"
        terminal.wait_for(asked, "1. yes", "4. no")
        assert not (project / "file").exists()
        terminal.line("9")
        terminal.wait_for("answer with a number from 1 to 5")
        terminal.send("1\r")
        terminal.wait_until((project / "file").exists, "the file")
        terminal.wait_for("tool: execute echo made > file")
        terminal.line("/exit")
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.raw
        assert b"\x08" not in terminal.raw


@pytest.mark.spec("T-A1.4")
def test_another_theme_leaves_it_plain(project: Path) -> None:
    with Terminal(*PASS, "--plain", rows=60) as terminal:
        terminal.wait_for(READY)
        terminal.line("/theme light")
        terminal.wait_for("drawn in the colours of light")
        terminal.line("hello")
        terminal.wait_for("agent:", " out")
        terminal.line("/exit")
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.raw
