"""A program killed at any point of its log loses nothing it had shown, and can be resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sessions.live_world import live, world_of

from fast_agent.messages.history import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from fast_agent.sessions.session import Session

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(tmp_path: Path) -> list[list[Any]]:
    """Run the program once for every point, and give what came of each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sessions.killed_program", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.anyio
@pytest.mark.spec("SESSION-3")
async def test_killed_at_every_event_nothing_shown_is_lost(
    tmp_path: Path, runs: list[list[Any]]
) -> None:
    killed = [run for run in runs if run[3]]
    before, after, quiet = (
        [run[0] for run in killed if run[1:3] == way]
        for way in ([False, False], [True, False], [False, True])
    )
    assert len(after) == len(before) >= len(quiet) > 15
    for points in (before, after, quiet):
        assert points == list(range(1, len(points) + 1))
    assert len(killed) == len(runs) - 3
    store = SessionStore(tmp_path)
    lengths: set[int] = set()
    for *_, session_id, shown in runs:
        with store.open(session_id) as session:
            lost = not_there(session, shown)
            assert lost == []
            lengths.add(session.state.last)
            for agent in session.state.agents:
                assert check_validity(session.history(agent)) == []
            assert check_validity(session.journal.transcript.messages()) == []
            async with live(world_of(), session.journal) as runtime:
                histories = {name: list(runtime.agent(name).history) for name in ("lead", "kid")}
                assert await runtime.agent("lead").send("and now") == "echo and now"
                await runtime.agent("kid").send("you too")
                for name, history in histories.items():
                    assert list(runtime.agent(name).history)[: len(history)] == history
                    assert check_validity(runtime.agent(name).history) == []
        with store.open(session_id) as again:
            assert again.state.open_turns == ()
    assert len(lengths) > 10


LIMITED = """
import resource, sys, pathlib, anyio
from fast_agent.errors import SessionError
from fast_agent.sessions.store import SessionStore
from tests.sessions.live_world import live, world_of

async def main():
    with SessionStore(pathlib.Path(sys.argv[1])).create() as session:
        async with live(world_of(), session.journal) as runtime:
            kid = runtime.agent("kid")
            await kid.send("kept")
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, -1))
            try:
                for number in range(50):
                    await kid.send(f"{number} " * 4000)
            except SessionError as error:
                print(session.id, len(kid.history), error.message, sep="|")
            await runtime.agent("pal").aclose()

anyio.run(main)
"""


@pytest.mark.spec("SESSION-11")
def test_a_limit_on_the_size_of_files_stops_the_turn_and_what_was_shown_is_there(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    session_id, length, message = done.stdout.strip().split("|")
    assert "cannot be written: the disk" in message
    with SessionStore(tmp_path).open(session_id) as session:
        history = session.history("kid")
        assert len(history) >= int(length) > 2
        assert check_validity(history) == []


def not_there(session: Session, shown: list[list[object]]) -> list[list[object]]:
    """Return what was shown and is not in the session."""
    there = {
        found
        for entry in session.journal.transcript
        for message in entry.messages
        for found in (
            message.text or str([call.name for call in message.tool_calls]),
            *(result.text for result in message.tool_results),
        )
    }
    return [line for line in shown if str(line[2]) not in there]
