"""What is taken out of a conversation at a terminal: exports, copies and summaries."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import READY, scripted

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = "# A heading\n\n- *one*\n- `two`\n\n```python\nx = 1\n```"


@pytest.mark.spec("T-H4.2")
def test_exports_and_copies_are_markdown_as_it_was_written(project: Path) -> None:
    environ = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}
    with Terminal(*scripted(project, {"text": _SOURCE}), environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("**go** on")
        terminal.wait_for("A heading", " out")
        terminal.wait_for_screen(READY)
        terminal.line("/copy")
        terminal.wait_for("to the terminal's clipboard")
        terminal.line("/session export kept.md")
        terminal.wait_for("is written to")
    copied = re.findall(rb"\x1b\]52;c;([^\x07]*)\x07", terminal.raw)
    assert [base64.b64decode(one).decode() for one in copied] == [_SOURCE]
    exported = (project / "kept.md").read_text("utf-8")
    assert _SOURCE in exported
    assert "**go** on" in exported


@pytest.mark.spec("T-C0.3")
def test_compact_puts_a_summary_in_the_place_of_older_turns(project: Path) -> None:
    steps = {"text": "the first answer"}, {"text": "SUMMARY: we met"}, {"text": "the second answer"}
    with Terminal(*scripted(project, *steps), columns=120) as terminal:
        terminal.wait_for(READY)
        terminal.line("hello")
        terminal.wait_for("the first answer", " out")
        terminal.wait_for_screen(READY)
        terminal.line("/compact")
        terminal.wait_for("continues from a summary of the 2 messages so far", "SUMMARY: we met")
        terminal.wait_for_screen(READY)
        terminal.line("and now")
        terminal.wait_for("the second answer")
