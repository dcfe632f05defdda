"""The status row drawn by a command of the user's."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from tests.patience import PATIENCE
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS

from fast_agent.config.load import load_settings
from fast_agent.errors import ConfigError
from fast_agent.tui.status_command import first_line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("T-U1.3")
@pytest.mark.parametrize(
    ("command", "row", "problem"),
    [
        ("cat", '{"a": 1}', ""),
        (r"printf 'one\033[2Jx\ntwo\n'", "one<U+001B>[2Jx", ""),
        ("printf last", "last", ""),
        ("yes", "y", ""),
        ("true", "", ""),
        ("exit 3", None, "ended with status 3"),
        ("no-such-command-here", None, "ended with status 127"),
    ],
)
@pytest.mark.anyio
async def test_the_first_line_of_a_command(
    tmp_path: Path, command: str, row: str | None, problem: str
) -> None:
    assert await first_line(command, '{"a": 1}', tmp_path, PATIENCE) == (row, problem)


@pytest.mark.spec("T-U1.3")
@pytest.mark.anyio
async def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    row, problem = await first_line("sleep 3600; echo late", "{}", tmp_path, 0.05)
    assert (row, problem) == (None, "took more than 0.05 s")


@pytest.mark.spec("T-U1.3")
def test_a_command_draws_the_status_row(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "status.py"
    script.write_text(
        "import json, sys\nfacts = json.load(sys.stdin)\n"
        "print('at', facts['model'], 'in', facts['mode'], '\\x1b[31m')\nprint('more')\n"
    )
    command = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(script))}"
    config = project / "own.yaml"
    config.write_text(json.dumps({"tui": {"status_command": command}}))
    with Terminal(*PASS, "--config-path", "own.yaml") as terminal:
        terminal.wait_for_screen("at passthrough in ask <U+001B>[31m")
        assert not any("more" in row for row in terminal.display)
        terminal.send("\x1b[Z")
        terminal.wait_for_screen("at passthrough in reading")
        terminal.send("\x1b[Z")
        terminal.wait_for_screen("trusting at passthrough")


@pytest.mark.spec("T-U1.3")
def test_a_found_configuration_may_not_name_the_command(tmp_path: Path) -> None:
    found, home = tmp_path / "project", tmp_path / "home"
    found.mkdir()
    home.mkdir()
    (found / "fastagent.config.yaml").write_text("tui: {status_command: touch here}\n")
    with pytest.raises(ConfigError, match="status_command") as caught:
        load_settings(cwd=found, environ={}, home=home)
    assert "--config-path" in (caught.value.diagnostics[0].hint or "")
    named = load_settings(
        cwd=found, environ={}, home=home, config_path=found / "fastagent.config.yaml"
    )
    assert named.tui.status_command == "touch here"
