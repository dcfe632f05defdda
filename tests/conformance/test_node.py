"""Installing Node and its packages: what cannot be had is said in one line."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.node import MissingError, Node, find_node

HERE = Path(__file__).parent


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_node_that_is_new_enough_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin/npm", "exit 0")
    script(tmp_path / "bin/node", "echo v22.19.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    node = find_node(tmp_path / "place")
    assert node.environ["PATH"].startswith(f"{tmp_path / 'bin'}{os.pathsep}")
    assert not (tmp_path / "place").exists()


def test_a_package_is_installed_once_for_each_version(tmp_path: Path) -> None:
    npm = 'mkdir -p node_modules/.bin; touch node_modules/.bin/run; echo "$@" >> ../calls'
    script(tmp_path / "bin/npm", npm)
    node = Node(tmp_path / "bin", tmp_path)
    for version in ("1", "1", "2", "2"):
        program = node.program("@scope/thing", version, "run")
        assert program == tmp_path / "thing/node_modules/.bin/run"
    calls = (tmp_path / "calls").read_text("utf-8").splitlines()
    assert [call.rpartition(" ")[2] for call in calls] == ["@scope/thing@1", "@scope/thing@2"]


def test_a_package_without_its_program_is_installed_again(tmp_path: Path) -> None:
    npm = script(tmp_path / "bin/npm", "exit 0")
    node = Node(tmp_path / "bin", tmp_path)
    with pytest.raises(MissingError, match="came without its program `run`"):
        node.program("thing", "1", "run")
    script(npm, "mkdir -p node_modules/.bin; touch node_modules/.bin/run")
    assert node.program("thing", "1", "run").exists()


def test_what_cannot_be_installed_is_missing(tmp_path: Path) -> None:
    npm = script(tmp_path / "bin/npm", "echo notes >&2; echo 'no network' >&2; exit 1")
    node = Node(tmp_path / "bin", tmp_path)
    with pytest.raises(MissingError, match=r"^`thing@1` cannot be installed: no network$"):
        node.program("thing", "1", "run")
    npm.unlink()
    alone = Node(tmp_path / "bin", tmp_path)
    alone.environ = {"PATH": str(tmp_path / "bin")}
    with pytest.raises(MissingError, match="npm"):
        alone.program("thing", "1", "run")


def test_a_run_without_node_is_skipped_in_one_line(tmp_path: Path) -> None:
    """Node is too old, and the environment that another would go into cannot be made."""
    script(tmp_path / "bin/node", "echo v20.0.0")
    script(tmp_path / "bin/npm", "exit 1")
    (tmp_path / "place").mkdir()
    (tmp_path / "place/node").write_text("in the way", "utf-8")
    code = (
        "import sys; from pathlib import Path; from tests.conformance import run;"
        f" run.PLACE = Path({str(tmp_path / 'place')!r}); sys.exit(run.main())"
    )
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=HERE.parents[1],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: conformance scenarios and MCP Inspector: ")
    assert done.stdout.count("\n") == 1
