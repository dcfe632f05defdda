"""The settings of the terminal: `tui` in a configuration, `/config` and `/theme`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import COMMAND, Terminal
from tests.tui.test_terminal import PASS, READY, scripted

from fast_agent.config.edit import with_setting
from fast_agent.config.settings import TUI, TuiSettings
from fast_agent.tui.drawing.rows import width
from fast_agent.tui.drawing.stream import MarkdownStream
from fast_agent.tui.drawing.theme import (
    BACKGROUNDS,
    CUBE_LEVELS,
    PALETTES,
    Theme,
    channels,
    cube_color,
)
from fast_agent.tui.input.keys import KEYS, bound_keys

if TYPE_CHECKING:
    from pathlib import Path


def luminance(rgb: tuple[int, int, int]) -> float:
    parts = [one / 255 for one in rgb]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.spec("T-A2.2")
@pytest.mark.parametrize("name", PALETTES)
def test_the_colours_of_a_theme_are_readable(name: str) -> None:
    ground = channels(BACKGROUNDS[name])
    for rgb in PALETTES[name].values():
        assert contrast(channels(rgb), ground) >= 4.5, rgb
        number = cube_color(rgb) - 16
        cube = (number // 36, number // 6 % 6, number % 6)
        red, green, blue = (CUBE_LEVELS[one] for one in cube)
        assert contrast((red, green, blue), ground) >= 4.5, (rgb, cube)


@pytest.mark.spec("T-A2.2")
def test_a_theme_is_taken_while_it_draws() -> None:
    theme = Theme(depth=1 << 24)
    assert theme.error("x") == "\x1b[31mx\x1b[0m"
    theme.become("dark")
    assert theme.error("x") == "\x1b[38;2;255;123;114mx\x1b[0m"
    theme.become("high-contrast")
    assert (theme.error("x"), theme.dim("x")) == ("\x1b[1mx\x1b[0m", "x")
    assert Theme(name="dark").error("x") == "\x1b[31mx\x1b[0m"  # a terminal of sixteen colours


@pytest.mark.spec("T-K3.1")
def test_keys_are_bound() -> None:
    keys, problems = bound_keys(
        {"ctrl-b": "steer", "alt-x": "stop", "f2": "stear", "hyper-q": "send"}
    )
    assert ("c-b",) in next(one for one in keys if one.action == "steer").keys
    assert set(problems) == {"alt-x", "f2", "hyper-q"}
    assert problems["f2"] == "there is no action `stear`; did you mean `steer`?"
    keys, problems = bound_keys({"ctrl-s": "copy", "enter": "clear", "Ctrl-S": "copy_code"})
    assert set(problems) == {"ctrl-s", "enter", "Ctrl-S"}  # each is the only key of something
    keys, problems = bound_keys({"f3": "steer", "ctrl-s": "copy"})
    assert not problems
    assert next(one for one in keys if one.action == "steer").keys == (("f3",),)
    assert bound_keys({}) == (KEYS, {})


@pytest.mark.spec("T-L3.3")
def test_the_terminal_wraps_prose() -> None:
    text = "word " * 60 + "\n\n- " + "item " * 40 + "\n"
    rows = MarkdownStream(40, Theme(), wraps=False).feed(text + "\n# end\n")
    assert max(width(row) for row in rows) > 190
    assert max(width(row) for row in MarkdownStream(40, Theme()).feed(text + "\n# end\n")) <= 40


@pytest.mark.parametrize(
    "before",
    ["", "default_model: sonnet", "tui: {width: 80}\n", "# mine\ntui:\n    width: 80 # why\n  \n",
     "tui:\n  theme: dark\n"],
)  # fmt: skip
def test_a_setting_is_written_where_it_belongs(before: str) -> None:
    from fast_agent.text.yaml_document import parse_yaml

    text = with_setting(before, "tui", "width", 120)
    text = with_setting(text, "tui", "status", ["agent", "mode"])
    value = parse_yaml(text).value
    assert isinstance(value, dict)
    kept = {"theme": "dark"} if "theme" in before else {}
    assert value["tui"] == {**kept, "width": 120, "status": ["agent", "mode"]}
    assert ("# mine" in text) == ("# mine" in before)


def test_the_table_names_every_setting() -> None:
    assert {one.name for one in TUI.entries} == {one.name for one in fields(TuiSettings)}


@pytest.mark.spec("T-C4.1", "T-L2.3", "T-U1.2", "T-M7.2", "T-M5.2", "T-B5.3")
def test_settings_are_shown_and_kept(project: Path, tmp_path: Path) -> None:
    (project / "fastagent.config.yaml").write_text(
        "tui:\n  status: [mode, agent]\n  markdown: false\n  thinking: show\n  bind: {f2: stear}\n"
    )
    step = {"thinking": "first this\nthen that", "text": "a **bold** " + "word " * 40}
    with Terminal(*scripted(project, step, step), columns=160, rows=50) as terminal:
        terminal.wait_for(
            "there is no action `stear`; did you mean `steer`?", "fastagent.config.yaml:5"
        )
        terminal.wait_for_screen("  ask · agent")
        terminal.line("go")
        terminal.wait_for("   then that", "a **bold** word")
        terminal.line("/config")
        terminal.wait_for("markdown: false (fastagent.config.yaml)", "width: 100")
        terminal.line("/config width 30")
        terminal.wait_for("width is 30 in")
        terminal.line("/config markdown true")
        terminal.wait_for("markdown is true in")
        terminal.line("/config width 3")
        terminal.wait_for("error: ")
        terminal.line("/config widht 30")
        terminal.wait_for("did you mean `width`?")
        terminal.line("/theme darc")
        terminal.wait_for("did you mean `dark`?")
        terminal.send("/theme hi")
        terminal.wait_for_screen("  high-contrast")
        terminal.send("\x1b\x03")
        terminal.line("again")
        terminal.wait_until(lambda: sum("a bold word" in r for r in terminal.everything) == 1, "it")
        rows = terminal.everything
        assert len(next(row for row in rows if "a bold word" in row)) <= 30
    assert "width: 30" in (tmp_path / "home" / "fastagent.config.yaml").read_text()


@pytest.mark.spec("T-M4.3")
def test_the_spinner_stands_still() -> None:
    from fast_agent.tui.drawing.activity import Activity

    now = [0.0]
    moving = Activity(Theme(), lambda: now[0], lambda: 80)
    still = Activity(Theme(), lambda: now[0], lambda: 80, motion=lambda: False)
    frames: dict[str, set[str]] = {"moving": set(), "still": set()}
    from fast_agent.agents.events import Origin, ToolStarted
    from fast_agent.messages.message import ToolCall

    origin = Origin("ann", "turn", None)
    for one in (moving, still):
        one.take(
            ToolStarted(origin, ToolCall("1", "look", {}), source="function", server_name=None)
        )
    for _ in range(8):
        now[0] += 0.25
        frames["moving"].add(moving.rows(80)[0].split("look")[0])
        frames["still"].add(still.rows(80)[0].split("look")[0])
    assert (len(frames["moving"]), len(frames["still"])) == (4, 1)


@pytest.mark.spec("T-K0.17")
def test_vi_edits(project: Path) -> None:
    (project / "fastagent.config.yaml").write_text("tui: {keys: vi}\n")
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("one two three")
        terminal.wait_for_screen("> one two three")
        terminal.send("\x1b")
        terminal.send("bdw0x")
        terminal.wait_for_screen("> ne two")
        terminal.send("\r")
        terminal.wait_for(" out")


@pytest.mark.spec("T-A1.1")
@pytest.mark.parametrize(
    ("flag", "variable", "setting", "reason"),
    [
        (True, "0", "false", "by flag"),
        (False, "1", "false", "by FAST_AGENT_PLAIN"),
        (False, "0", "true", None),
        (False, "", "true", "by the setting tui.plain"),
        (False, "", "false", None),
    ],
)
def test_what_turns_plain_mode_on(
    project: Path, flag: bool, variable: str, setting: str, reason: str | None
) -> None:
    (project / "fastagent.config.yaml").write_text(f"tui: {{plain: {setting}}}\n")
    options = ("--plain",) if flag else ()
    with Terminal(*PASS, *options, environ={"FAST_AGENT_PLAIN": variable}) as terminal:
        terminal.wait_for(READY)
        if reason is None:
            assert b"\x1b" in terminal.raw
        else:
            terminal.wait_for(f"[plain mode: on, {reason}]")
            assert b"\x1b" not in terminal.raw


@pytest.mark.spec("T-A1.1")
def test_plain_mode_for_a_pipe(project: Path) -> None:
    """Standard output is a pipe while a user types at a terminal."""
    shell = f"{COMMAND} go --model passthrough | cat > out"
    with Terminal("-c", shell, program=("/bin/sh",)) as terminal:
        out = project / "out"
        terminal.wait_until(lambda: out.exists() and READY in out.read_text(), "the greeting")
        terminal.send("hello\n/exit\n")
        assert terminal.wait() == 0
    text = out.read_text()
    assert "[plain mode: on, as standard output is not a terminal]" in text
    assert "\x1b" not in text
    assert text.count("hello") >= 1
