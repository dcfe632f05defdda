"""Random keys, keys with modifiers, reports of the focus, and the clipboard at a terminal."""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY, holding_tool

from fast_agent.tui.input.keyboard import Decoder

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
_CARD = "---\nmodel: passthrough\nfunction_tools: [f.py:hold]\n---\nHold.\n"
_SEED = 1511
_KEYS = (
    *"abc xyz@#?/\\\"'0123456789éß漢🙂",
    *("\t", "\x7f", "\x01", "\x05", "\x0b", "\x15", "\x17", "\x19", "\x1f", "\x0a", "\x0c"),
    *("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~", "\x1b[5~", "\x1b[Z"),
    *("\x1bb", "\x1bf", "\x1bd", "\x1b[I", "\x1b[O", "\x1b[27;2;13~", "\x1b[13;5u"),
    *("\x12", "\x1b[200~pasted\r\ntwo\x1b[201~", "\xc2\x9b", "\x1b[9999z", "\x1bOP"),
)
"""Keys that edit, complete, search, paste and draw; none that leaves, sends or starts a program."""


@pytest.mark.spec("T-K4.1", "T-P2.1")
def test_ten_thousand_random_keys(project: Path) -> None:
    print("seed", _SEED)
    chance = random.Random(_SEED)
    with Terminal(*PASS, "--no-session", columns=60, rows=20) as terminal:
        terminal.wait_for(READY)
        for part in range(20):
            terminal.send("".join(chance.choices(_KEYS, k=500)))
            # Ctrl-C leaves a search or a menu, else clears the text; with an `x` it never leaves.
            terminal.send(f"x\x03\x15\x0bpart{part}")
            terminal.wait_for_screen(f"part{part}")
            assert terminal.process.poll() is None
        terminal.send("\x03")
        terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        # None of these keys sends: no turn was started, and no command but `/keys` (`?`, F1) ran.
        assert not any(row.startswith(("you ", "agent ")) for row in terminal.everything)
        commands = {row for row in terminal.everything if re.match("> [/!@#]", row)}
        assert commands <= {"> /keys"}
        terminal.line("still here")
        # What was typed and the answer; the keys that were listed meanwhile hold many words.
        terminal.wait_until(
            lambda: sum(row == "still here" for row in terminal.everything) == 2, "the answer"
        )
        assert not any("Traceback" in row or "it failed" in row for row in terminal.everything)


@pytest.mark.spec("T-K1.1")
@pytest.mark.parametrize("key", ["\x1b[27;2;13~", "\x1b[13;2u", "\x1b[27;5;13~", "\x1b[13;5u"])
def test_enter_with_shift_or_control_starts_a_new_line(project: Path, key: str) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("one")
        terminal.wait_for_screen("> one")
        terminal.send(f"{key}two")
        terminal.wait_for_screen("  two")
        terminal.send("\r")
        terminal.wait_for(" out")
        assert [row for row in terminal.everything if row in {"one", "two"}] == ["one", "two"]
        terminal.send("\x04")
        assert terminal.wait() == 0
    # Asked for at the start, and returned at the end.
    for on, off in ((b"\x1b[>4;1m", b"\x1b[>4;0m"), (b"\x1b[?1004h", b"\x1b[?1004l")):
        assert terminal.raw.count(on) == terminal.raw.count(off) > 0
        assert terminal.raw.rindex(off) > terminal.raw.rindex(on)


def test_reports_of_the_focus_are_not_keys() -> None:
    decoder = Decoder()
    assert decoder.feed(b"a\x1b[Ob\x1b[I") == [
        ("keys", "a"), ("focus", "\x1b[O"), ("keys", "b"), ("focus", "\x1b[I")
    ]  # fmt: skip


@pytest.mark.spec("T-W6.1")
@pytest.mark.parametrize(
    ("program", "expected"),
    [("", b"\x07"), ("WezTerm", b"\x1b]9;fast-agent: the turn ended\x07")],
)
def test_a_terminal_without_focus_is_notified(project: Path, program: str, expected: bytes) -> None:
    pipe = holding_tool(project)
    (project / "fastagent.config.yaml").write_text("tui: {notify_seconds: 0}\n", "utf-8")
    (project / "ann.md").write_text(_CARD, "utf-8")
    environ = {"TERM_PROGRAM": program, "TMUX": ""}
    with Terminal("go", "--card", "ann.md", environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("***CALL_TOOL hold {}")
        terminal.wait_for_screen("stop")
        terminal.send("\x1b[O")
        terminal.send("x")
        terminal.wait_for_screen("> x")
        assert expected not in terminal.raw
        pipe.write_text("done")
        terminal.wait_until(lambda: expected in terminal.raw, "a notification")
        terminal.send("\x7f\x1b[I")
        terminal.wait_for_screen(READY)
        seen = terminal.raw.count(expected)
        terminal.line("and again")
        terminal.wait_until(lambda: " out" in "".join(terminal.display[-6:]), "the end")
        terminal.wait_for_screen(READY)
        assert terminal.raw.count(expected) == seen  # it has the focus


@pytest.mark.spec("T-K0.14", "T-C0.5")
def test_an_image_of_the_clipboard_is_attached(project: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "clip.png").write_bytes(PNG)
    clip = programs / "xclip"
    clip.write_text(f"#!/bin/sh\n[ -e {tmp_path}/clip.png ] && cat {tmp_path}/clip.png\n")
    clip.chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "DISPLAY": ":9", "WAYLAND_DISPLAY": ""}
    with Terminal(*PASS, environ=environ, columns=200) as terminal:
        terminal.wait_for(READY)
        for keys in ("\x16", "/image\r"):
            terminal.send(keys)
            terminal.wait_for_screen('> @"')
            terminal.wait_for_screen(".png")
            terminal.send("\x15")
            terminal.wait_until(lambda: ">" in terminal.display, "an empty editor")
        terminal.send("\x16")
        terminal.wait_for_screen(".png")
        terminal.send("what is this?\r")
        terminal.wait_for("+ ", "what is this?", " out")
        (tmp_path / "clip.png").unlink()
        terminal.send("\x16")
        terminal.wait_for_screen("there is no image on the clipboard")
    saved = list((tmp_path / "home/clipboard").iterdir())
    assert [one.read_bytes() for one in saved] == [PNG]
    assert saved[0].stat().st_mode & 0o077 == 0


@pytest.mark.spec("T-C0.4")
def test_a_report_has_no_messages_and_no_keys(project: Path) -> None:
    (project / "secret-desk.md").write_text("---\nmodel: passthrough\n---\nhidden words\n")
    environ = {"OPENAI_API_KEY": "sk-not-for-reports"}
    with Terminal("go", "--card", "secret-desk.md", environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("a private message")
        terminal.wait_for(" out")
        terminal.wait_for_screen(READY)
        terminal.line("/bug")
        terminal.wait_for("nothing was sent")
    (path,) = project.glob("fast-agent-report-*.md")
    text = path.read_text("utf-8")
    assert "- agents: 1 agent\n" in text
    assert "TERM=xterm-256color" in text
    assert "- size: 80 x 24\n" in text
    for word in ("private", "sk-not", "secret-desk", "hidden"):
        assert word not in text


@pytest.mark.spec("T-K0.10")
@pytest.mark.parametrize("key", ["\x1b\r", "\x1b[27;2;13~"])
def test_enter_with_a_modifier_in_a_search_sends_nothing(project: Path, key: str) -> None:
    with Terminal(*PASS, "--no-session") as terminal:
        terminal.wait_for(READY)
        terminal.send("not to be sent")
        terminal.wait_for_screen("> not to be sent")
        terminal.send("\x12")
        terminal.wait_for_screen("search here:")
        terminal.send(key)
        terminal.wait_for_screen("> not to be sent")
        terminal.send("!")
        terminal.wait_for_screen("> not to be sent!")
        assert not any(row.startswith("you ") for row in terminal.everything)
