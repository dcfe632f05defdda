"""Codex, from the package registry, as the terminal's peer: of those measured it echoes best."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.process import BenchError, run_process
from bench.setup import ROOT
from bench.terminal_client import terminal

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from bench.setup import Setup
    from bench.terminal_client import TerminalClient

PACKAGE = "@openai/codex"
PLACE = ROOT / ".venvs" / "codex"
PROMPT = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
READY = "for shortcuts"
_SETTINGS = """\
model = "gpt-5"
model_provider = "bench"
check_for_update_on_startup = false
[model_providers.bench]
name = "bench"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
[projects.{place}]
trust_level = "trusted"
"""


def install_codex(place: Path = PLACE) -> Path:
    """Install Codex, unless it is there; returns its program, without the wrapper that starts it.

    Args:
        place: Where; kept for the next run.

    Raises:
        BenchError: There is no npm, or it cannot be installed.
    """
    found = _program(place)
    if found is None:
        npm = shutil.which("npm")
        if npm is None:
            raise BenchError("Codex is not installed: it needs npm")
        place.mkdir(parents=True, exist_ok=True)
        install = (npm, "install", "--no-fund", "--no-audit", "--silent", "--prefix", place)
        run_process((*install, PACKAGE), cwd=place, environ=os.environ)
        found = _program(place)
        if found is None:
            raise BenchError("Codex is not installed: its package has no program for this system")
    return found


def _program(place: Path) -> Path | None:
    return next(place.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"), None)


def codex_version(place: Path = PLACE) -> str:
    """The version of the Codex that is installed."""
    package = place / "node_modules" / PACKAGE / "package.json"
    return str(json.loads(package.read_text("utf-8"))["version"])


@contextmanager
def codex(setup: Setup, port: int) -> Generator[TerminalClient]:
    """Run Codex at a pseudo-terminal, in its mode that leaves the answer in the scrollback.

    Args:
        setup: How to measure.
        port: That of the model server on loopback.
    """
    command = install_codex()
    home = setup.work / "codex"
    home.mkdir(exist_ok=True)
    settings = _SETTINGS.format(port=port, place=json.dumps(str(setup.work)))
    (home / "config.toml").write_text(settings, "utf-8")
    environ = {**setup.environ, "CODEX_HOME": str(home)}
    with terminal((command, "--no-alt-screen"), cwd=setup.work, environ=environ) as client:
        yield client
