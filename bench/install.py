"""The size of an installation: what it asks for, how much comes, how large that is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.peers import PACKAGE
from bench.process import run_json, run_process
from bench.setup import HERE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup


def figures(setup: Setup) -> Iterator[Figure]:
    """Install the locked core and the program anew, and weigh it; the peer is weighed as it is."""
    python = _install(setup)
    done = compare(
        setup,
        lambda: _weigh(setup, python, "fast-agent"),
        peer=lambda peer: _weigh_theirs(setup, peer),
        rounds=1,
    )
    yield done.figure("direct", "direct dependencies of the core", "", Goal(12))
    yield done.figure("distributions", "distributions installed", "", Goal(40))
    yield done.figure("size", "installed, with bytecode", "MB", Goal(65))
    yield done.figure("bare", "installed, without bytecode", "MB", Goal(65))


def _install(setup: Setup) -> Path:
    """Install what is weighed; the wheel is built elsewhere, so that no build tool is weighed."""
    locks = ROOT / "requirements"
    wheels = setup.work / "wheels"
    builder = _environment(setup, "build")
    python = _environment(setup, "core")
    _pip(builder, "install", "--require-hashes", "--requirement", locks / "build.txt")
    wheel = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT)
    _pip(builder, *wheel)
    _pip(python, "install", "--require-hashes", "--requirement", locks / "core.txt")
    _pip(python, "install", "--no-deps", *wheels.glob("*.whl"))
    return python


def _environment(setup: Setup, name: str) -> Path:
    place = setup.work / name
    _run(setup.python, "-m", "venv", place)
    return place / "bin" / "python"


def _pip(python: Path, *arguments: str | Path) -> None:
    _run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)


def _run(*command: str | Path) -> None:
    # Packages come from where the user gets them, so the user's own environment is passed on.
    run_process(command, cwd=ROOT, environ=os.environ)


def _weigh(setup: Setup, python: Path, package: str) -> Values:
    command = (python, "-P", HERE / "weigh.py", package)
    return run_json(command, cwd=setup.work, environ=setup.environ)


def _weigh_theirs(setup: Setup, peer: Peer) -> Values:
    return _weigh(setup, peer.python, PACKAGE)
