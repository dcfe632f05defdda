"""Commands behind `!`: what stays between them, and which get the terminal."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.patience import until, wait_until
from tests.processes import ended, lives
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY

from fast_agent.tui.user_shell import UserShell, needs_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def nothing(lines: Sequence[str]) -> None:
    del lines


@pytest.mark.anyio
@pytest.mark.spec("T-C3.2")
async def test_directory_and_exports_stay(tmp_path: Path) -> None:
    inner = tmp_path / "in ner"
    inner.mkdir()
    shell = UserShell(tmp_path, os.environ)
    assert await shell.run("cd 'in ner' && export A_WORD='two\nlines' HID=1; exit 3", nothing) == (
        "\nexit status 3"
    )
    assert shell.directory == inner
    assert await shell.run('echo "$A_WORD"; pwd', nothing) == f"two\nlines\n{inner}"
    await shell.run("unset HID; local_only=1", nothing)
    assert await shell.run('echo "[$HID$local_only]"', nothing) == "[]"
    await shell.run("kill -9 $$", nothing)
    assert (await shell.run("pwd", nothing)) == str(inner)
    await shell.run("cd ..; rmdir 'in ner'; cd /nowhere", nothing)
    assert shell.directory == tmp_path


@pytest.mark.anyio
async def test_a_directory_that_is_gone_is_left(tmp_path: Path) -> None:
    shell = UserShell(tmp_path, os.environ)
    await shell.run("mkdir gone && cd gone", nothing)
    (tmp_path / "gone").rmdir()
    assert await shell.run("pwd", nothing) == str(tmp_path)


def pid_in(file: Path) -> int:
    """The number that a command wrote into a file, 0 as long as it has not."""
    text = file.read_text() if file.exists() else ""
    return int(text) if text.endswith("\n") else 0


@pytest.mark.anyio
@pytest.mark.spec("T-Q4.2")
async def test_a_stop_ends_all_that_a_command_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with anyio.create_task_group() as tasks:
        command = "sleep 100000 & echo $! >pid; wait"
        tasks.start_soon(UserShell(tmp_path, os.environ).run, command, nothing)
        await until(lambda: pid_in(file))
        tasks.cancel_scope.cancel()
    await ended(pid_in(file))


@pytest.mark.anyio
async def test_what_a_command_leaves_in_the_background_stays(tmp_path: Path) -> None:
    shell = UserShell(tmp_path, os.environ)
    await shell.run("sleep 100000 >/dev/null 2>&1 & echo $! >pid", nothing)
    pid = pid_in(tmp_path / "pid")
    try:
        await shell.run("true", nothing)
        assert lives(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.spec("T-Q4.2")
def test_commands_end_with_a_program_that_is_killed(project: Path) -> None:
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.line("!sleep 100000 & echo $! >pid; echo its num''ber is there; wait")
        terminal.wait_for("its number is there")  # from here on the program has taken it over
        pid = pid_in(project / "pid")
        assert lives(pid)
        terminal.process.kill()
        wait_until(lambda: not lives(pid))


@pytest.mark.spec("T-C3.3")
@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("vim notes.md", True),
        ("EDITOR=vi /usr/bin/vim x", True),
        ("git log | less -R", True),
        ("cd src && exec top", True),
        ("python3", True),
        ("python3 run.py", False),
        ("less x | cat", False),
        ("vim --version > out", False),
        ("echo vim", False),
        ("echo 'open", False),
        ("", False),
    ],
)
def test_programs_that_need_the_terminal(command: str, needed: bool) -> None:
    assert needs_terminal(command) is needed


@pytest.mark.spec("T-C3.2", "T-C3.3")
def test_an_interactive_program_gets_the_terminal(project: Path) -> None:
    programs = project / "programs"
    programs.mkdir()
    (programs / "vim").write_text(
        "#!/bin/sh\ntest -t 0 && test -t 1 && echo has the terminal in $PWD\n"
        "read line\necho got $line\nexit 4\n"
    )
    (programs / "vim").chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}"}
    with Terminal(*PASS, columns=200, environ=environ) as terminal:
        terminal.wait_for(READY)
        terminal.line("!cd programs")
        terminal.wait_for(f"! runs in {programs}".replace("! ", "`!` "))
        terminal.line("!vim x")
        terminal.wait_for(f"has the terminal in {programs}")
        terminal.send("some words\n")
        terminal.wait_for("got some words", "exit status 4")
        terminal.wait_for_screen(READY)
        terminal.line("and on")
        terminal.wait_until(lambda: terminal.everything.count("and on") == 2, "the answer")
