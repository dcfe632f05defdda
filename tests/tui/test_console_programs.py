"""Programs that get the terminal: the editor and the pager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("T-K0.11", "T-K0.12")
def test_other_programs_get_the_terminal(project: Path) -> None:
    (project / "ed.sh").write_text("#!/bin/sh\nprintf 'from the editor' > \"$1\"\n")
    (project / "ed.sh").chmod(0o755)
    (project / "pager.sh").write_text("#!/bin/sh\ncat > paged\nread word < /dev/tty\n")
    (project / "pager.sh").chmod(0o755)
    environ = {"EDITOR": str(project / "ed.sh"), "PAGER": str(project / "pager.sh")}
    with Terminal(*PASS, environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.send("\x07")
        terminal.wait_for_screen("> from the editor")
        terminal.send("\r")
        terminal.wait_for(" out")
        terminal.send("\x14")
        terminal.wait_until((project / "paged").exists, "paged")
        terminal.wait_until(lambda: "from the editor" in (project / "paged").read_text(), "text")
        terminal.send("q\n")
        terminal.wait_for_screen(READY)


@pytest.mark.spec("T-C0.6")
def test_a_topic_opens_in_the_pager(project: Path) -> None:
    with Terminal(*PASS, environ={"PAGER": "head -1"}) as terminal:
        terminal.wait_for(READY)
        terminal.line("/help models")
        terminal.wait_for("# Models")
