from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    NewProgram: TypeAlias = Callable[..., FastAgent]
    WriteCard: TypeAlias = Callable[..., Path]

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"


@pytest.fixture(name="write_card")
def _write_card(tmp_path: Path) -> WriteCard:
    """Write a card of some fields, given as lines of frontmatter."""

    def write(name: str, *fields: str, body: str = "Be brief.") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(("---", *fields, "---", body)), encoding="utf-8")
        return path

    return write


@pytest.fixture(name="new_program")
def _new_program(tmp_path: Path) -> NewProgram:
    """Make a program in an empty directory, with an environment of its own."""

    def make(configuration: str | None = None, **environ: str) -> FastAgent:
        if configuration is not None:
            (tmp_path / "fastagent.config.yaml").write_text(configuration, encoding="utf-8")
        home = str(tmp_path / "home")
        return FastAgent(
            "test", cwd=tmp_path, environ={"HOME": home, "FAST_AGENT_HOME": home, **environ}
        )

    return make


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The address of a real MCP server, started once."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "http"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout as lines:
        port = int(lines.readline())
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()
        process.wait()
