"""Starting the leader of a process group."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.runners import every_runner

from fast_agent.tools.shell.process_group import open_leader

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runners import RunnerName

pytestmark = pytest.mark.anyio


@pytest.mark.spec("LOOP-10")
@every_runner
@pytest.mark.parametrize(
    ("argument", "variables"),
    [("first\0second", {}), ("a", {"WORD": "first\0second"}), ("a", {"WO\0RD": "a"})],
)
async def test_nothing_is_started_with_less_than_was_given(
    tmp_path: Path, runner: RunnerName, argument: str, variables: dict[str, str]
) -> None:
    del runner
    made = tmp_path / "made"
    command = [sys.executable, "-c", f"open({str(made)!r}, 'w')", argument]
    with pytest.raises(ValueError, match="holds a NUL character"):
        await open_leader(command, cwd=tmp_path, env={**os.environ, **variables})
    assert not made.exists()


@every_runner
async def test_it_leads_a_group_of_its_own(tmp_path: Path, runner: RunnerName) -> None:
    del runner
    process = await open_leader(["/bin/sh", "-c", "read -r _; exit 3"], cwd=tmp_path, env=None)
    async with process:
        assert os.getpgid(process.pid) == process.pid
        assert process.stdin is not None
        await process.stdin.send(b"\n")
        assert await process.wait() == 3
