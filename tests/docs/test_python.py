"""Every Python block of the README and the docs runs as a plain script, with models that wait."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from http.client import BadStatusLine, HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.patience import PATIENCE, wait_until
from tests.processes import unexpected
from tests.tui.terminal_world import Terminal

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WAITING = "slow?seconds=0.01"
"""Answers as `passthrough` does, which the pages use, but never at once."""

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PORT = "8123"


class Script(NamedTuple):
    """A Python block.

    Args:
        page: Where it stands, below the repository.
        line: The line on which it begins.
        name: The name of the file, where the page gives one.
        code: The text.
    """

    page: str
    line: int
    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """The pages that people wrote; those of `reference` are made from the code, and say so."""
    docs = [one for one in (ROOT / "docs").rglob("*.md") if "reference" not in one.parts]
    return [ROOT / "README.md", *sorted(docs)]


def scripts() -> list[Script]:
    found: list[Script] = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for block in _BLOCK.finditer(text):
            if block[1] == "python":
                line = text.count("\n", 0, block.start()) + 1
                name = str(page.relative_to(ROOT))
                found.append(Script(name, line, block[2] or "", block[3]))
    return found


@pytest.fixture(name="environ")
def _environ(tmp_path: Path) -> dict[str, str]:
    # The pages start a server by a program that fetches it; here it is installed already.
    shim = tmp_path / "bin" / "uvx"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\nexec "$@"\n')
    shim.chmod(0o755)
    path = os.pathsep.join((str(shim.parent), str(BIN), os.environ["PATH"]))
    home = str(tmp_path / "home")
    return {"PATH": path, "HOME": home, "FAST_AGENT_HOME": home, "FAST_AGENT_MODEL": WAITING}


@pytest.fixture(name="place")
def _place(tmp_path: Path, environ: dict[str, str]) -> Path:
    """A directory as a reader has it: with the cards of `fast-agent new cards`."""
    place = tmp_path / "work"
    place.mkdir()
    made = subprocess.run([BIN / "fast-agent", "new", "cards"], cwd=place, env=environ, check=False)
    assert made.returncode == 0
    return place


def start(script: Script, place: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    path = place / (script.name or "script.py")
    path.write_text(script.code.replace('"passthrough"', f'"{WAITING}"'), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, path],
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.spec("LOOP-6")
@pytest.mark.parametrize("script", scripts(), ids=str)
def test_a_block_runs_as_a_script(script: Script, place: Path, environ: dict[str, str]) -> None:
    if _PORT in script.code:
        _see_it_serve(script, place, environ)
        return
    if ".interactive()" in script.code:
        _see_it_talk(script, place, environ)
        return
    with start(script, place, environ) as running:
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, unexpected(err)) == (0, "")
    assert script.name or out


def _see_it_serve(script: Script, place: Path, environ: dict[str, str]) -> None:
    """Run a block that serves until it is stopped, at a port that is free."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
    code = script.code.replace(_PORT, str(port))
    with start(script._replace(code=code), place, environ) as running:
        try:
            wait_until(lambda: running.poll() is not None or _answers(port))
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert (running.returncode, unexpected(err)) == (0, "")


def _answers(port: int) -> bool:
    """Whether a request is answered, whatever with: a connection is taken earlier."""
    client = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        client.request("GET", "/")
        return client.getresponse().status > 0
    except (ConnectionError, BadStatusLine):
        return False
    finally:
        client.close()


def test_the_pages_have_scripts() -> None:
    assert {script.page for script in scripts()} >= {"README.md", "docs/python.md"}
    assert len([one for one in scripts() if "asyncio.run(" in one.code]) >= 9
    assert shutil.which("mcp-server-time", path=str(BIN)) is not None


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/workflows.md"])
def test_what_the_pages_say_is_said(page: str, place: Path, environ: dict[str, str]) -> None:
    script = next(one for one in scripts() if one.page == page)
    with start(script, place, environ) as running:
        assert "hello\n" in running.communicate(timeout=PATIENCE)[0]


def _see_it_talk(script: Script, place: Path, environ: dict[str, str]) -> None:
    """Talk with what a script opens at a terminal."""
    path = place / "script.py"
    path.write_text(script.code, encoding="utf-8")
    with Terminal(path, program=(sys.executable,), environ=environ, cwd=place) as terminal:
        terminal.wait_for("? for keys")
        terminal.line("hello")
        terminal.wait_for(" out")
        terminal.send("\x04")
        assert terminal.wait() == 0
