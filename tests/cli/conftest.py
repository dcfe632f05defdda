from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from tests.card_writer import card_writer
from tests.forked import run_forked
from tests.mcp.served_everything import served_everything
from tests.own_home import own_home

from fast_agent.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., "Ran"]

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        """The codes of the problems it reported, in order."""
        return [line.split("[")[1][:5] for line in self.err.splitlines() if "[FA" in line[:12]]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with no configuration and no key of whoever runs the tests."""
    for name in os.environ:
        if "__" in name or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("FAST_AGENT_MODEL", raising=False)
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    own_home(work, tmp_path / "home")
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def strange_project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says that the project is the person's own."""
    home = tmp_path / "strangers"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FAST_AGENT_HOME", str(home / ".fast-agent"))


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process, as its entry point does."""

    def run(*arguments: str | Path, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        done = capsys.readouterr()
        assert "Traceback" not in done.out + done.err
        return Ran(code, done.out, done.err)

    return run


@pytest.fixture(name="spawn")
def _spawn(project: Path) -> Run:
    """Run the command in a process of its own."""

    def spawn(*arguments: str | Path, stdin: str = "") -> Ran:
        done = run_forked([*map(str, arguments)], project, os.environ, stdin)
        return Ran(done.returncode, done.stdout, done.stderr)

    return spawn


@pytest.fixture(name="write_card")
def _write_card(project: Path) -> WriteCard:
    return card_writer(project)


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The address of a real MCP server, started once."""
    with served_everything() as url:
        yield url


@pytest.fixture(scope="session")
def tiny_server() -> str:
    """The command line of a small real MCP server over stdio."""
    return f"{sys.executable} {SERVER.with_name('tiny.py')} once"
