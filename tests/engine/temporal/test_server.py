"""The server of the tests itself: on loopback only, and gone with whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import wait_until
from tests.processes import lives
from tests.temporal_server import TemporalServer, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"{why_not()}")

STARTS_AND_DIES = """
import os, signal
from tests.temporal_server import TemporalServer
server = TemporalServer(in_memory=True).__enter__()
print(server.pid, server.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_server_listens_on_loopback_only() -> None:
    with TemporalServer(in_memory=True) as server:
        rows = [
            line.split()
            for name in ("tcp", "tcp6")
            for line in Path(f"/proc/{server.pid}/net/{name}").read_text().splitlines()[1:]
        ]
        port = f":{server.port:04X}"
        listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(port)]
        assert listening == [f"0100007F{port}"]
    assert not server.directory.exists()


def test_the_server_ends_with_a_test_run_that_is_killed() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTS_AND_DIES],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    pid, directory = ran.stdout.split()
    wait_until(lambda: not lives(int(pid)))
    subprocess.run(["rm", "-rf", directory], check=True)
