"""`go --doctor`: what is found of the terminal, and what its replies mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal

from fast_agent.tui.doctor import TerminalReplies, read_replies
from fast_agent.tui.plain_reason import OutputFacts, plain_reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONSOLE = "as this console takes no control sequences"
REPLIES = (
    b"\x1bP>|kitty(0.35.2)\x1b\\\x1b[?2026;2$y\x1b[?0u\x1b]11;rgb:1e1e/2020/ffff\x1b\\\x1b[?62;c"
)


@pytest.mark.spec("T-X1.2")
@pytest.mark.parametrize(
    ("flag", "environ", "setting", "output", "reason"),
    [
        (False, {}, False, OutputFacts(is_terminal=True, is_posix=False, draws=True), None),
        (False, {}, False, OutputFacts(is_terminal=True, is_posix=False, draws=False), CONSOLE),
        (
            False, {"FAST_AGENT_PLAIN": "0"}, True,
            OutputFacts(is_terminal=True, is_posix=False, draws=False), None,
        ),
        (True, {}, False, OutputFacts(is_terminal=True, is_posix=False, draws=False), "by flag"),
        (
            False, {}, False, OutputFacts(is_terminal=False, is_posix=False),
            "as standard output is not a terminal",
        ),
        (False, {"TERM": "dumb"}, False, OutputFacts(is_terminal=True, is_posix=False), None),
        (False, {}, False, OutputFacts(is_terminal=True), "as the terminal cannot draw"),
        (False, {"TERM": "xterm"}, False, OutputFacts(is_terminal=True), None),
    ],
)  # fmt: skip
def test_a_console_without_control_sequences_gets_plain_mode(
    flag: bool, environ: Mapping[str, str], setting: bool, output: OutputFacts, reason: str | None
) -> None:
    assert plain_reason(flag=flag, environ=environ, setting=setting, output=output) == reason


@pytest.mark.spec("T-X3.1")
@pytest.mark.parametrize(
    ("data", "replies"),
    [
        (b"", TerminalReplies()),
        (b"typed\x1b[?6c", TerminalReplies(answered=True)),
        (b"\x1b[?4;6c", TerminalReplies(answered=True)),
        (
            b"\x1b_Gi=31;OK\x1b\\\x1b[?62;4;22c",
            TerminalReplies(answered=True, images=("kitty", "sixel")),
        ),
        (b"\x1b_Gi=31;ENOTSUPPORTED\x1b\\\x1b[?62;14c", TerminalReplies(answered=True)),
        (b"\x1b[?2026;0$y\x1b[?6c", TerminalReplies(answered=True, synchronized=False)),
        (
            REPLIES,
            TerminalReplies(
                answered=True, name="kitty(0.35.2)", synchronized=True, extended_keys=True,
                background="1e20ff",
            ),
        ),
    ],
)  # fmt: skip
def test_replies_of_a_terminal(data: bytes, replies: TerminalReplies) -> None:
    assert read_replies(data) == replies


@pytest.mark.spec("T-X3.1")
def test_the_doctor_asks_the_terminal(project: Path) -> None:
    environ = {"TMUX": "/tmp/tmux-1", "COLORTERM": "truecolor", "EDITOR": "no-such-editor -w"}
    with Terminal("go", "--doctor", columns=90, environ=environ) as terminal:
        terminal.wait_until(lambda: b"\x1b[c" in terminal.raw, "the question")
        terminal.send(REPLIES.replace(b"0.35.2", b"\xc2\x9b31m"))
        assert terminal.wait() == 0
        terminal.wait_for("pager")
        rows = dict(row.split(maxsplit=1) for row in terminal.display if " " in row)
        assert terminal.modes() == terminal.modes_before
    assert rows["output"] == "terminal, 90 x 24"
    assert rows["terminal"].startswith("kitty(")
    assert b"\xc2\x9b" not in terminal.raw
    assert rows["within"].startswith("tmux (TMUX)")
    assert rows["background"] == "#1e20ff"
    assert rows["colours"] == "16,777,216, by COLORTERM"
    assert rows["editor"] == "no-such-editor -w (not found)"
    assert rows["drawing"] == "as rows"
