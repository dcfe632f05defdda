"""The examples of docs/tools.md, run by the program itself."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Command(NamedTuple):
    """A command of the page and what it prints there."""

    line: str
    output: str


def blocks(kind: str) -> list[tuple[str, str]]:
    text = PAGE.read_text("utf-8")
    return [(name, body) for found, name, body in _BLOCK.findall(text) if found == kind]


def commands() -> list[Command]:
    found: list[Command] = []
    for _, body in blocks("console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append(Command(line, output))
    return found


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("docs")
    for kind in ("markdown", "python"):
        for name, body in blocks(kind):
            (made / name).write_text(body, "utf-8")
    return made


def run(arguments: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from fast_agent.cli.main import main; main()"]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(directory)}
    return subprocess.run(
        [*program, *arguments],
        cwd=directory,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_the_page_has_examples() -> None:
    assert len(commands()) >= 8


def test_the_cards_of_the_page_are_sound(directory: Path) -> None:
    done = run(["check", *[name for name, _ in blocks("markdown")]], directory)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_commands_print_what_the_page_says(directory: Path) -> None:
    # One after the other: a file that one of them writes is read by the next.
    for command in commands():
        program, *arguments = shlex.split(command.line)
        assert program == "fast-agent"
        done = run([*arguments, "--quiet"], directory)
        assert (command.line, done.stdout) == (command.line, command.output), done.stderr
