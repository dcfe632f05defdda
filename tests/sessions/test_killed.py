"""A program killed at any point of its log loses nothing it had shown, and can be resumed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sessions.live_world import live, world_of

from fast_agent.messages.validity import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from fast_agent.sessions.session import Session

pytestmark = pytest.mark.anyio
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


async def test_killed_at_every_event_nothing_shown_is_lost(
    tmp_path: Path, runs: list[list[Any]]
) -> None:
    killed = [run for run in runs if run[2]]
    before = [run[0] for run in killed if not run[1]]
    assert before == list(range(1, len(before) + 1))
    assert len(before) > 25
    assert len(killed) == 2 * len(before) == len(runs) - 2
    store = SessionStore(tmp_path)
    lengths: set[int] = set()
    for _, _, _, session_id, shown in runs:
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


def not_there(session: Session, shown: list[list[object]]) -> list[list[object]]:
    """Give what was shown and is not in the session."""
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
