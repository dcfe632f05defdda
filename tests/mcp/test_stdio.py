"""A server may write what it likes; what is passed on is bounded, and the rest is counted."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fast_agent.mcp.stdio import MAX_LINES, WINDOW_SECONDS, ServerLog

NOISY = """
import sys
for number in range(int(sys.argv[2])):
    print("noise", number, file=sys.stdout if sys.argv[1] == "out" else sys.stderr)
sys.stdout.flush()
from mcp.server.mcpserver import MCPServer
MCPServer("noisy", log_level="ERROR").run()
"""


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


@pytest.mark.spec("SECRETS-2")
@pytest.mark.parametrize(("stream", "level"), [("out", ""), ("err", "debug")])
def test_a_noisy_server(tmp_path: Path, stream: str, level: str) -> None:
    server = tmp_path / "noisy.py"
    server.write_text(NOISY)
    done = subprocess.run(
        [Path(sys.executable).with_name("fast-agent"), "go", "--model", "passthrough",
         "--stdio", f"{sys.executable} {server} {stream} 5000", "-m", "hi"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAST_AGENT_LOG": level},
    )  # fmt: skip
    assert done.stdout == "hi\n"
    reported = re.findall(r"server `noisy`: .*noise \d+", done.stderr)
    (left,) = re.findall(r"server `noisy`: (\d+) lines were left out", done.stderr)
    assert len(reported) == MAX_LINES
    assert int(left) == 5000 - MAX_LINES
