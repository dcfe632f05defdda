"""The configurations of `docs/hosts.md` are well-formed and start a server that answers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs/hosts.md").read_text("utf-8")
PROGRAM = Path(sys.executable).with_name("fast-agent")


def configurations() -> list[Any]:
    found: list[Any] = []
    for language, text in re.findall(
        r"^```(json|yaml|toml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    ):
        read = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}[language]
        ((_, servers),) = read(text).items()
        found += servers.values()
    return found


def command_of(settings: Any) -> list[str]:
    command: Any = settings.get("command", settings.get("cmd"))
    return [*command] if isinstance(command, list) else [command, *settings["args"]]


STARTED = [one for one in configurations() if "command" in one or "cmd" in one]


@pytest.mark.parametrize("settings", STARTED, ids=lambda one: next(iter(one)))
def test_a_host_gets_an_answer(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "skills/one").mkdir(parents=True)
    (tmp_path / "skills/one/SKILL.md").write_text("---\nname: one\ndescription: One.\n---\nDo.\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# A\n")
    program, *arguments = command_of(settings)
    assert program == "fast-agent"
    arguments = [one.replace("${workspaceFolder}", str(tmp_path)) for one in arguments]
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"},
    }
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "resources/list"},
    ]
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=tmp_path,
        input="".join(json.dumps(one) + "\n" for one in asked),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    uris = {one["uri"] for one in answers[1]["result"]["resources"]}
    assert "skill://one/SKILL.md" in uris
    assert ("guide://help" in uris) == ("--guide" in arguments)


def test_the_page_names_every_host_and_the_address() -> None:
    assert len(STARTED) == 9
    (http,) = [one for one in configurations() if "url" in one]
    assert http["url"] == "http://127.0.0.1:8000/mcp"


def test_commands_of_the_page_have_options_that_exist() -> None:
    reported = subprocess.run(
        [PROGRAM, "resources", "serve", "--help"], capture_output=True, text=True, check=True
    ).stdout
    shells = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = " ".join(shells).replace("\\\n", " ").splitlines()
    used = {
        option
        for line in lines
        if "fast-agent resources serve" in line
        for option in re.findall(r"--[a-z-]+", _own_options(line))
    }
    assert used - {"--method", "--uri"} <= set(re.findall(r"--[a-z-]+", reported))
    assert "--token-file" in used


def _own_options(line: str) -> str:
    """The part of a line the server reads; the Inspector takes what follows `--method` itself."""
    return line.partition("serve")[2].partition("--method")[0]
