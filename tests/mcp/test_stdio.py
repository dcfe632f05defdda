"""A server may write what it likes; what is passed on is bounded, and the rest is counted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fast_agent.mcp.process import MAX_LINES

NOISY = """
import sys
for number in range(int(sys.argv[2])):
    print("noise", number, file=sys.stdout if sys.argv[1] == "out" else sys.stderr)
sys.stdout.flush()
from mcp.server.mcpserver import MCPServer
MCPServer("noisy", log_level="ERROR").run()
"""


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
