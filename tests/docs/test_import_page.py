"""Each "Coming from …" of the page about imports is walked: import, check, run, export."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
PROGRAM = Path(sys.executable).with_name("fast-agent")
SERVER = Path(__file__).parents[1] / "mcp/servers/tiny.py"
WALKS = {
    name: re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for name, text in re.findall(
        r"^## Coming from ([^\n]+)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL
    )
}


def test_every_tool_has_a_walk() -> None:
    assert len(WALKS) == 7
    assert all(len(blocks) >= 2 for blocks in WALKS.values())


@pytest.mark.spec("FMT-21")
@pytest.mark.parametrize("tool", sorted(WALKS))
def test_coming_from(tmp_path: Path, tool: str) -> None:
    *theirs, (name, card) = WALKS[tool]
    for file, text in theirs:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    home = str(tmp_path / "home")
    environ = {"FAST_AGENT_HOME": home, "HOME": home, "PATH": "/usr/bin:/bin"}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=tmp_path,
            env=environ,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("import", ".")
    written = (tmp_path / ".fast-agent/agent-cards" / name).read_text(encoding="utf-8")
    fields = yaml.safe_load(written.split("---\n")[1])
    expected = yaml.safe_load(card)
    assert {key: fields.get(key) for key in expected} == expected
    assert fields.keys() - expected.keys() <= {"type", "description"}
    run("check")
    config = tmp_path / "fastagent.config.yaml"
    if config.exists():  # a server of the page answers nobody: one that runs stands for it
        command = f"command: {sys.executable}\n      args: [{SERVER}, once]"
        config.write_text(re.sub(r"url: \S+", lambda _: command, config.read_text()))
    answer = run("go", "--trust", "--model", "passthrough", "-m", "hello")
    assert "hello" in answer
    run("export", "--to", "claude", "--output", "out")
