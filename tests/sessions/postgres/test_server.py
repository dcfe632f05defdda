"""The PostgreSQL server of the tests itself: it ends with the test run that started it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import wait_until
from tests.postgres_server import why_not
from tests.processes import children_of, lives

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=f"{why_not()}"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed"),
]

STARTS_AND_IS_KILLED = """
import sys
from tests.postgres_server import PostgresServer
server = PostgresServer().__enter__()
print(server.pid, server.directory, flush=True)
sys.stdin.read()
"""


def test_the_server_ends_with_a_test_run_that_is_killed() -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_IS_KILLED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert run.stdout is not None
    pid, directory = run.stdout.readline().split()
    try:
        processes = {int(pid), *children_of(int(pid))}
        assert len(processes) > 1
        run.kill()
        run.communicate()
        wait_until(lambda: not any(map(lives, processes)))
    finally:
        run.kill()
        shutil.rmtree(directory)
