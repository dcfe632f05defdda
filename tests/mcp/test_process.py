"""The process of a server: it starts before the SDK is imported, and its log is bounded."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import PATIENCE

from fast_agent import FastAgent, FastAgentError
from fast_agent.mcp.process import MAX_LINES, WINDOW_SECONDS, ServerLog

TINY = Path(__file__).with_name("servers") / "tiny.py"
SCRIPT = """
import asyncio, json, sys, threading
seen = []

def hear(event, arguments):
    if event == "subprocess.Popen" and "tiny.py" in str(arguments[1]):
        seen.append("start")

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in {"mcp.client", "pydantic_ai.models"}:
            seen.append(f"{threading.current_thread().name}: {name}")

sys.addaudithook(hear)
sys.meta_path.insert(0, Finder)
from fast_agent import FastAgent, FastAgentError

fast = FastAgent("start", ignore_config=True)
for name in ("one", "two"):
    fast.server(name, command=sys.executable, args=[sys.argv[1], "once"], cwd=sys.argv[2])
fast.agent("ann", model="generic.m", servers=["one", "two"])

async def main():
    async with fast.run() as app:
        try:
            await app.ann("hi")
        except FastAgentError as error:
            seen.append(str(error))

asyncio.run(main())
print(json.dumps(seen))
"""


def test_servers_start_up_while_packages_are_imported(tmp_path: Path) -> None:
    environ = {"GENERIC_BASE_URL": "http://127.0.0.1:9/v1", "GENERIC_API_KEY": "none"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, TINY, tmp_path],
        env={**os.environ, **environ, "FAST_AGENT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *steps, error = json.loads(done.stdout)
    assert steps == [
        "start",
        "start",
        "MainThread: mcp.client",
        "import generic: pydantic_ai.models",
    ]
    assert "127.0.0.1:9" in error


def test_a_burst_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = ServerLog("s", lambda: now)
    with caplog.at_level(logging.INFO, "fast_agent.mcp.server"):
        for number in range(MAX_LINES + 7):
            log.write(logging.ERROR, f"line {number}\nof two")
        lines = [record.getMessage() for record in caplog.records]
        assert lines[0] == "server `s`: line 0 of two"
        assert len(lines) == MAX_LINES + 1
        assert "what follows is only counted" in lines[-1]
        caplog.clear()
        now = WINDOW_SECONDS
        log.write(logging.ERROR, "later")
        assert [record.getMessage() for record in caplog.records] == [
            "server `s`: 7 lines were left out",
            "server `s`: later",
        ]
        caplog.clear()
        log.close()
        assert caplog.records == []


def test_what_is_not_shown_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = ServerLog("s")
    with caplog.at_level(logging.WARNING, "fast_agent.mcp.server"):
        for _ in range(2 * MAX_LINES):
            log.write(logging.DEBUG, "detail")
        log.close()
    assert caplog.records == []


@pytest.mark.anyio
async def test_a_server_gets_proxies_and_certificates_but_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://ann:hunter2@proxy.example:3128")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/own.pem")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    fast = FastAgent("start", ignore_config=True)
    script = (
        "import json, os, pathlib; pathlib.Path('env').write_text(json.dumps(dict(os.environ)))"
    )
    fast.server("one", command=sys.executable, args=["-c", script], cwd=str(tmp_path))
    fast.agent("ann", model="passthrough", servers=["one"])
    async with fast.run() as app:
        with pytest.raises(FastAgentError, match="stopped before it was ready"):
            await app.ann("hi")
    given = json.loads((tmp_path / "env").read_text())
    assert given["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert given["NODE_EXTRA_CA_CERTS"] == "/etc/own.pem"
    assert not given.keys() & {"ALL_PROXY", "OPENAI_API_KEY"}
