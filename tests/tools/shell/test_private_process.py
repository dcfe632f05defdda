"""No command reads the keys of the program, though it runs as the same ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

SHELL = r"""
import asyncio, json, os, sys
from pathlib import Path
from fast_agent.messages.message import ToolCall
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.tools.shell.shell import shell_tool
from fast_agent.tools.tool import ToolContext

async def main():
    if sys.argv[1] == "open":
        from fast_agent.tools.shell import shell
        shell.make_private = lambda: None
    tool = shell_tool(AgentConfig(name="a", shell=True), Path.cwd(), dict(os.environ))
    context = ToolContext(agent_name="a", turn_id="t", call_id="c", correlation_id="r")
    command = "cat /proc/$PPID/environ; head -c 1 /proc/$PPID/mem; env; cat /proc/self/environ"
    result = await tool.call(ToolCall("c", "execute", {"command": command}), context)
    # What this process may still do of its own.
    own = [os.readlink(f"/proc/self/fd/{one}") for one in (0, 1)]
    print(json.dumps([result.text, own]))

asyncio.run(main())
"""
CANARY = "canary-5b1f70c2"


def as_ordinary_user() -> list[str]:
    """The words before a command that make root an ordinary user."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    if subprocess.run([*words, sys.executable, "-c", ""], capture_output=True).returncode != 0:
        pytest.skip("an ordinary user may not run this Python")
    return words


@pytest.mark.spec("TR-S1.2")
@pytest.mark.parametrize("way", ["private", "open"])
def test_a_shell_of_the_same_user_cannot_read_the_program(way: str) -> None:
    words = as_ordinary_user()
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        environ = {"PATH": os.environ["PATH"], "HOME": place, "MY_API_KEY": CANARY}
        done = subprocess.run(
            [*words, sys.executable, "-c", SHELL, way],
            cwd=place, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    text, own = json.loads(done.stdout)
    # Where it is open the key is there to be read: the attempt is a real one.
    assert (CANARY in text) is (way == "open")
    assert ("Permission denied" in text) is (way == "private")
    assert f"HOME={place}" in text
    assert own[0] == "/dev/null"


@pytest.mark.spec("TR-S1.2")
def test_a_server_cannot_read_the_program_that_started_it() -> None:
    words = as_ordinary_user()
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        Path(place, "server.sh").write_text(
            "env > env; cat /proc/$PPID/environ > seen 2> refused\n"
        )
        done = subprocess.run(
            [*words, Path(sys.executable).with_name("fast-agent"), "go", "--model", "passthrough",
             "--stdio", "sh server.sh", "-m", "hi"],
            cwd=place, env={"PATH": os.environ["PATH"], "HOME": place, "MY_API_KEY": CANARY},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert "stopped before it was ready (exit status 1)" in done.stderr
        assert CANARY not in Path(place, "env").read_text()
        assert Path(place, "seen").read_text() == ""
        assert "Permission denied" in Path(place, "refused").read_text()


@pytest.mark.spec("TR-S1.2")
def test_under_root_it_is_said_once(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root is warned")
    calls = "\n".join(["***CALL_TOOL execute " + json.dumps({"command": "true"})] * 3)
    done = subprocess.run(
        [Path(sys.executable).with_name("fast-agent"), "go", "--model", "passthrough", "--shell",
         "-m", calls],
        cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.count("running as root") == 1
