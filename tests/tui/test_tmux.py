"""The program in a real terminal multiplexer, which wraps its lines again when it is resized."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.tui.terminal_world import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.card_writer import WriteCard

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A server of its own with one window."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def __call__(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout

    def lines(self) -> list[str]:
        """Everything in the scrollback and on the screen; lines it wrapped are joined."""
        return [row.rstrip() for row in self("capture-pane", "-p", "-J", "-S", "-").split("\n")]

    def wait(self, is_so: Callable[[list[str]], bool]) -> None:
        """Wait until what it shows is so."""
        wait_until(lambda: is_so(self.lines()))


@contextmanager
def tmux(directory: Path, *command: str) -> Generator[Tmux]:
    found = Tmux(directory / "tmux.socket")
    line = " ".join(map(str, command))
    found("new-session", "-d", "-x", "100", "-y", "24", line)
    try:
        yield found
    finally:
        subprocess.run(["tmux", "-S", str(directory / "tmux.socket"), "kill-server"], check=False)


@pytest.mark.spec("T-X4.1", "T-L3.1")
def test_no_line_is_lost_or_doubled_by_twenty_resizes(
    project: Path, tmp_path: Path, write_card: WriteCard
) -> None:
    pipe = project / "pipe"
    os.mkfifo(pipe)
    (project / "f.py").write_text(
        f"def hold() -> str:\n    with open({str(pipe)!r}) as pipe:\n        return pipe.read()\n"
    )
    write_card("ann.md", "function_tools: [f.py:hold]")
    code = "".join(f"    first_{number} = {number}\n" for number in range(40))
    prose = "".join(f"Paragraph {number} of some words.\n\n" for number in range(20))
    steps = (
        {"text": f"```python\n{code}```\n\n{prose}", "call": {"name": "hold"}},
        {"text": prose.replace("Paragraph", "Sentence")},
    )
    (project / "script.yaml").write_text(json.dumps({"steps": steps}))
    sizes = random.Random(7)
    command = (str(COMMAND), "go", "--model", "scripted?file=script.yaml", "--card", "ann.md")
    with tmux(tmp_path, *command) as pane:
        pane.wait(lambda rows: any("? for keys" in row for row in rows))
        pane("send-keys", "go", "Enter")
        pane.wait(lambda rows: any("hold" in row and "s" in row for row in rows[-8:]))
        # Wider than the terminal becomes, and typed on while it changes.
        pane("send-keys", "-l", f"a draft in the editor {'of many words ' * 8}END")
        pane.wait(lambda rows: any("END" in row for row in rows))
        for _ in range(20):
            pane(
                "resize-window", "-x", str(sizes.randint(60, 200)), "-y", str(sizes.randint(12, 40))
            )
            pane("send-keys", "-l", "x")
        pane("resize-window", "-x", "100", "-y", "24")
        pane.wait(lambda rows: any("END" + "x" * 20 in row for row in rows))
        pipe.write_text("done")
        pane.wait(lambda rows: any(" out" in row for row in rows))
        rows = pane.lines()
    assert sum("a draft in the editor" in row for row in rows) == 1
    for number in range(40):
        # Copied as it was written: with its indent, and without blanks behind it.
        assert rows.count(f"    first_{number} = {number}") == 1, number
    for number in range(20):
        assert sum(f"Paragraph {number} of" in row for row in rows) == 1, number
        assert sum(f"Sentence {number} of" in row for row in rows) == 1, number


_DRAWS = """
import os, sys, time
from fast_agent.tui.drawing.screen import Screen, terminal_size

pipe, stale = sys.argv[1], sys.argv[2] == "stale"
before = terminal_size()
screen = Screen(1, (lambda: before) if stale else terminal_size)
screen.draw(["work", "> draft", "menu", "status"], (1, 7), [f"line {n}." for n in range(40)])
open(pipe).read()
while screen.is_settling:
    time.sleep(0.01)
for n in range(3):
    screen.draw(["work", "> draft", "menu", f"status {n}"], (1, 7))
screen.draw(["> draft", "the status"], (0, 7), ["more"])
screen.draw(["> draft", "the last status"], (0, 7), ["and more"])
open(pipe).read()
"""


@pytest.mark.spec("T-X4.1")
@pytest.mark.parametrize("size", ["stale", "known"])
@pytest.mark.parametrize("rows", [12, 23, 40])
def test_no_line_is_lost_where_the_terminal_drops_rows(
    tmp_path: Path, size: str, rows: int
) -> None:
    """A lower terminal drops the rows below the cursor, before the program knows of it or after."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "draws.py").write_text(_DRAWS)
    command = (sys.executable, str(tmp_path / "draws.py"), str(pipe), size)
    with tmux(tmp_path, *command) as pane:
        pane.wait(lambda rows: any("status" in row for row in rows))
        pane("resize-window", "-x", "100", "-y", str(rows))
        pipe.write_text("")
        pane.wait(lambda rows: any("the last status" in row for row in rows))
        found = pane.lines()
        pipe.write_text("")
    for text in (*(f"line {number}." for number in range(40)), "more", "and more", "> draft"):
        assert found.count(text) == 1, (text, found)
