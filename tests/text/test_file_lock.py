"""The lock between processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from fast_agent.text.safe_file import FileLock

if TYPE_CHECKING:
    from pathlib import Path


def test_one_holds_it_and_the_next_gets_it_when_it_is_given_back(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.holder() is None
    assert first.take()
    assert not second.take()
    assert not second.take(wait=0.02)
    assert second.holder() == os.getpid()
    first.release()
    first.release()
    assert second.take(wait=1)
    second.release()


def test_the_end_of_a_process_gives_it_back(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom fast_agent.text.safe_file import FileLock\n"
        "assert FileLock(pathlib.Path(sys.argv[1])).take()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, tmp_path / "lock"])
    assert child.wait() == 0
    lock = FileLock(tmp_path / "lock")
    assert lock.holder() == child.pid
    assert lock.take()
    lock.release()
