"""The prompt that is drawn while the program is still loading."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import COMMAND, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard

READY = "? for keys"
PASS = ("go", "--model", "passthrough")


def slow_card(project: Path, write_card: WriteCard) -> Path:
    """Write a card whose function file waits for a pipe; returns the pipe."""
    pipe = project / "pipe"
    os.mkfifo(pipe)
    (project / "f.py").write_text(
        f"with open({str(pipe)!r}) as pipe:\n    pipe.read()\ndef f() -> str:\n    return 'done'\n"
    )
    write_card("ann.md", "function_tools: f.py:f")
    return pipe


@pytest.mark.spec("T-S1.2")
def test_what_is_typed_before_the_first_prompt_is_kept(project: Path) -> None:
    """The shell still holds the terminal, with its echo, when the user begins to type."""
    gate = project / "gate"
    os.mkfifo(gate)
    shell = f"read line < {gate}; exec {COMMAND} go --model passthrough"
    with Terminal("-c", shell, program=("/bin/sh",)) as terminal:
        terminal.send("say one\nand two")
        terminal.wait_for("and two")  # the echo of the terminal itself
        gate.write_text("\n")
        terminal.wait_for(" out")
        terminal.wait_for_screen("> and two")
        terminal.wait_for_screen(READY)
        rows = terminal.everything
        behind = rows[next(at for at, row in enumerate(rows) if row.startswith("you ")) :]
        assert behind.count("say one") == 2
        assert not any("two" in row for row in behind if row != "> and two")


@pytest.mark.spec("T-S1.1", "T-K4.1")
def test_what_is_typed_before_cards_are_loaded_is_kept(
    project: Path, write_card: WriteCard
) -> None:
    pipe = slow_card(project, write_card)
    with Terminal(*PASS, "--card", "ann.md") as terminal:
        terminal.wait_for_screen("loading cards")
        terminal.line("say one")
        terminal.wait_for_screen("1 to send")
        terminal.send("\x1b[200~pasted\rlines\x1b[201~ and twö")
        terminal.send("x\x7f")
        assert READY not in "".join(terminal.everything)
        pipe.write_text("")
        terminal.wait_for(" out")
        terminal.wait_for_screen("lines and twö")
        terminal.send("\r")
        terminal.wait_until(lambda: sum("and twö" in row for row in terminal.everything) == 2, "2")
        rows = terminal.everything
        assert not any("loading" in row for row in rows)
        assert [row for row in rows if row == "say one"] == ["say one"] * 2
        terminal.send("\x04")
        assert terminal.wait() == 0
        assert terminal.modes() == terminal.modes_before


@pytest.mark.spec("T-X2.1")
@pytest.mark.parametrize("key", ["\x03", ""])
def test_it_can_be_interrupted_while_loading(
    project: Path, write_card: WriteCard, key: str
) -> None:
    slow_card(project, write_card)
    with Terminal(*PASS, "--card", "ann.md") as terminal:
        terminal.wait_for_screen("loading cards")
        if key:
            terminal.send(key)
        else:
            terminal.process.terminate()
        assert terminal.wait() != 0
        assert terminal.modes() == terminal.modes_before
        assert not any("loading" in row for row in terminal.everything)
        assert terminal.raw.count(b"\x1b[?2004h") == terminal.raw.count(b"\x1b[?2004l") == 1


@pytest.mark.spec("T-S1.1")
def test_what_goes_wrong_while_loading_stands_above(project: Path) -> None:
    with Terminal(*PASS, "--card", "nobody.md") as terminal:
        assert terminal.wait() == 1
        terminal.wait_for("nobody.md")
        assert not any("loading" in row for row in terminal.everything)


@pytest.mark.spec("T-S4.1", "T-P2.1")
def test_keys_typed_before_a_question_about_trust_never_answer_it(
    project: Path, tmp_path: Path, write_card: WriteCard
) -> None:
    (tmp_path / "home" / "fastagent.config.yaml").unlink()  # nobody vouched for the project
    write_card(".fast-agent/agent-cards/ann.md", "shell: true")
    with Terminal(*PASS, columns=200) as terminal:
        terminal.send("y\ry\r")  # before the program runs at all
        terminal.wait_for("wants to act", "Let it?")
        terminal.wait_for_reader()
        terminal.send("\n")
        terminal.wait_for(" out")  # the lines are messages now
        terminal.wait_for_screen("agent ·")
        assert not any("ann" in row for row in terminal.display[-2:])
