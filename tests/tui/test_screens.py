"""Screens of the real program, kept as text; the same frames are the pictures of the docs.

`make screens` writes them again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from tests.tui.screens import frame_svg, frame_text
from tests.tui.terminal_world import Terminal

if TYPE_CHECKING:
    from tests.card_writer import WriteCard

_FRAMES = Path(__file__).with_name("screens")
_PICTURES = Path(__file__).parents[2] / "docs" / "screens"
_READY = "? for keys"
_ANSWER = """\
The second draft is **clearer**: it names the reader in its first line.

1. `draft-1.md` explains before it says what it is about.
2. `draft-2.md` begins with an example.

```python
def words(text: str) -> int:
    return len(text.split())
```

| draft | words |
|---|---|
| first | 412 |
| second | 287 |
"""


def check_frame(terminal: Terminal, name: str) -> None:
    """Compare what the terminal shows with the kept frame, or write it for `make screens`."""
    kept = _FRAMES / f"{name}.txt"
    if kept.exists() and not os.environ.get("WRITE_SCREENS"):
        with suppress(AssertionError):  # what differs is shown below
            terminal.wait_until(
                lambda: frame_text(terminal.screen) == kept.read_text("utf-8"), name
            )
    text, picture = frame_text(terminal.screen), frame_svg(terminal.screen)
    if os.environ.get("WRITE_SCREENS"):
        _FRAMES.mkdir(exist_ok=True)
        _PICTURES.mkdir(exist_ok=True)
        kept.write_text(text, "utf-8")
        (_PICTURES / f"{name}.svg").write_text(picture, "utf-8")
    assert text == kept.read_text("utf-8")
    assert picture == (_PICTURES / f"{name}.svg").read_text("utf-8")
    drawn = ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    letters = "".join("".join(one.itertext()) for one in drawn)
    assert "".join(letters.split()) == "".join(text.split())


@pytest.fixture(name="go")
def _go(project: Path, write_card: WriteCard) -> tuple[str, ...]:
    (project / "f.py").write_text(
        'def count_words(text: str) -> int:\n    """Count words."""\n    return len(text.split())\n'
    )
    write_card("clerk.md", "function_tools: [f.py:count_words]\nconfirm: [count_words]")
    (project / "fastagent.config.yaml").write_text("tui: {motion: false}\n")
    call = {"name": "count_words", "arguments": {"text": "a draft of six short words"}}
    steps = ({"text": "I count the words first.", "call": call}, {"text": _ANSWER})
    (project / "script.yaml").write_text(json.dumps({"steps": steps}))
    return ("go", "--model", "scripted?file=script.yaml", "--card", "clerk.md", "--no-session")


@pytest.mark.spec("T-V2.1")
def test_a_question_and_an_answer(go: tuple[str, ...]) -> None:
    with Terminal(*go, columns=80, rows=32) as terminal:
        terminal.wait_for(_READY)
        terminal.line("compare both drafts")
        terminal.wait_for_screen("no, and say why")
        terminal.wait_until(
            lambda: not any("wait, Esc" in row for row in terminal.display),
            "a question that takes keys",
        )
        terminal.wait_until(lambda: "I count the words first." in terminal.display, "the text")
        check_frame(terminal, "permission")
        terminal.send("1")
        terminal.wait_for(" out")
        terminal.wait_for_screen(_READY)
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        check_frame(terminal, "answer")


@pytest.mark.spec("T-V2.1")
def test_commands_are_completed(go: tuple[str, ...]) -> None:
    with Terminal(*go, columns=80, rows=24) as terminal:
        terminal.wait_for(_READY)
        terminal.send("/se")
        terminal.wait_for_screen("/session")
        terminal.wait_until(lambda: "· ask ·" in terminal.display[4], "the row below the choices")
        check_frame(terminal, "completion")
        terminal.send("\t")
        terminal.wait_for_screen("> /session")


def test_tab_completes_before_the_choices_are_there(go: tuple[str, ...]) -> None:
    with Terminal(*go, columns=80, rows=24) as terminal:
        terminal.wait_for(_READY)
        terminal.send("/se\t")
        terminal.wait_for_screen("> /session")
        terminal.send("\x15/m\t")  # `/mcp` and `/model`: the choices stay
        terminal.wait_for_screen("  /model")
        terminal.wait_for_screen("> /m")
