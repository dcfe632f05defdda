"""The peer: `fast-agent-mcp` from the package registry, in an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bench.process import BenchError, run_process
from bench.setup import ROOT, Peer

PACKAGE = "fast-agent-mcp"
PLACE = ROOT / ".venvs" / "peer"
OLDEST, NEWEST = 12, 15
"""The minor versions of Python 3 the peer runs on."""


def install_peer(place: Path = PLACE) -> Peer:
    """Install the peer, unless it is there.

    Args:
        place: Its environment; kept for the next run.

    Raises:
        BenchError: There is no Python for it, or it cannot be installed.
    """
    python = place / "bin" / "python"
    stamp = place / ".ready"
    if not stamp.exists():
        base = find_python()
        if base is None:
            raise BenchError(f"not installed: it needs Python 3.{OLDEST} or newer")
        shutil.rmtree(place, ignore_errors=True)
        _run(base, "-m", "venv", place)
        _run(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", PACKAGE)
        stamp.touch()
    code = f"from importlib.metadata import version; print(version({PACKAGE!r}))"
    run = run_process((python, "-P", "-c", code), cwd=place, environ=os.environ)
    return Peer(python, run.output.strip())


def find_python() -> Path | None:
    """Find the Python nearest to ours that the peer runs on: on the path, then under pyenv."""
    found: dict[int, Path] = {}
    for minor in range(OLDEST, NEWEST + 1):
        for candidate in _candidates(minor):
            if minor not in found and _is_python(candidate, minor):
                found[minor] = candidate
    near = sorted(found, key=lambda minor: abs(minor - sys.version_info.minor))
    return found[near[0]] if near else None


def _candidates(minor: int) -> list[Path]:
    found = [Path(path) for name in (f"python3.{minor}", "python3") if (path := shutil.which(name))]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    # A newer patch level comes first.
    versions = sorted(root.glob(f"versions/3.{minor}.*"), key=_patch, reverse=True)
    return [*found, *(version / "bin" / "python" for version in versions)]


def _patch(directory: Path) -> int:
    digits = re.search(r"\d+$", directory.name)
    return int(digits[0]) if digits else -1


def _is_python(path: Path, minor: int) -> bool:
    code = f"import sys, venv; sys.exit(sys.version_info[:2] != (3, {minor}))"
    try:
        return subprocess.run((path, "-c", code), capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _run(*command: str | Path) -> None:
    try:
        run_process(command, cwd=ROOT, environ=os.environ)
    except BenchError as error:
        raise BenchError(f"not installed: {str(error).splitlines()[-1][:160]}") from error
