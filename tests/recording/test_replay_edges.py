"""What is harder to record: models that servers ask for, smart agents, history files, resources."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.own_home import own_home

from fast_agent.app import FastAgent
from fast_agent.recording.cassette import read_cassette
from fast_agent.recording.recorder import Recorder
from fast_agent.recording.replayer import Replayer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeAlias

    from fast_agent.agent_app import AgentApp

    Play: TypeAlias = Callable[[AgentApp], Awaitable[Any]]

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"


def write(directory: Path, **files: str) -> None:
    """Write cards by their name, with `__` for the dot."""
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)


async def twice(directory: Path, play: Play) -> tuple[Any, Any, Replayer]:
    """Record a run and replay it; gives what each gave with its use, and the replay's tape."""

    async def go(tape: Recorder | Replayer) -> Any:
        fast = FastAgent(cwd=directory, environ={**own_home(directory), "PATH": "/usr/bin:/bin"})
        fast.load_agents(".")
        async with fast.run(steps=tape) as app:
            said = await play(app)
            tape.check()
            return said, app.usage

    recorder = Recorder(directory / "run.jsonl")
    recorded = await go(recorder)
    recorder.close()
    player = Replayer(read_cassette(directory / "run.jsonl"))
    return recorded, await go(player), player


@pytest.mark.spec("REPLAY-1", "REPLAY-2")
async def test_what_a_server_asks_a_model_counts_in_a_replay_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        one__md="---\ntype: agent\nmodel: passthrough\nservers: [every]\n---\n"
        "Help.\n{{serverInstructions}}\n",
        fastagent__config__yaml=f"mcp:\n  servers:\n    every:\n      command: {sys.executable}\n"
        f"      args: [{SERVER}, stdio]\n",
    )

    async def play(app: AgentApp) -> list[str]:
        asked = await app["one"].send('***CALL_TOOL every__consult {"question": "why"}')
        read = await app["one"].with_resource("see this", "every", "note://a")
        return [asked, read]

    recorded, replayed, player = await twice(tmp_path, play)
    assert replayed == recorded
    assert "why" in recorded[0][0]
    assert recorded[1].requests == 4
    assert player.left() == ()
    # The server is gone from this machine, and the replay does not miss it.
    config = tmp_path / "fastagent.config.yaml"
    config.write_text(config.read_text().replace(sys.executable, "/no/such/python"))
    again = Replayer(read_cassette(tmp_path / "run.jsonl"))
    fast = FastAgent(cwd=tmp_path, environ=own_home(tmp_path))
    fast.load_agents("one.md")
    async with fast.run(steps=again) as app:
        assert await play(app) == recorded[0]
    again.check()


@pytest.mark.spec("REPLAY-2")
async def test_a_smart_agent_runs_no_cards_in_a_replay(tmp_path: Path) -> None:
    work = tmp_path / "cards"
    work.mkdir()
    write(work, kid__md="---\ntype: agent\nmodel: passthrough\n---\nRepeat.\n")
    write(tmp_path, lead__md="---\ntype: smart\nmodel: passthrough\n---\nLead.\n")

    async def play(app: AgentApp) -> str:
        return await app["lead"].send(
            '***CALL_TOOL smart {"agent_card_path": "cards/kid.md", "message": "hello kid"}'
        )

    recorded, replayed, player = await twice(tmp_path, play)
    assert replayed == recorded
    assert recorded[0] == "hello kid"
    assert (recorded[1].requests, recorded[1].tool_calls) == (3, 1)
    assert player.left() == ()


@pytest.mark.spec("REPLAY-2")
async def test_a_replay_writes_no_history_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        lead__md="---\ntype: agent\nmodel: passthrough\nagents: [kid]\nhistory_source: messages\n"
        "history_merge_target: messages\ndefault: true\n---\nLead.\n",
        kid__md="---\ntype: agent\nmodel: playback\nmessages: kid.txt\n---\nRepeat.\n",
        kid__txt="---USER\nfirst\n---ASSISTANT\nsecond\n",
    )

    async def play(app: AgentApp) -> list[str]:
        call = '***CALL_TOOL agent__kid {"message": "hello"}'
        return [await app["lead"].send(call) for _ in range(2)]

    before = (tmp_path / "kid.txt").read_text()
    recorder = Recorder(tmp_path / "run.jsonl")
    fast = FastAgent(cwd=tmp_path, environ=own_home(tmp_path))
    fast.load_agents("lead.md", "kid.md")
    async with fast.run(steps=recorder) as app:
        recorded = await play(app)
    recorder.close()
    merged = (tmp_path / "kid.txt").read_text()
    assert merged.count("hello") == before.count("hello") + 2
    player = Replayer(read_cassette(tmp_path / "run.jsonl"))
    async with fast.run(steps=player) as app:
        assert await play(app) == recorded
    player.check()
    assert player.left() == ()
    assert (tmp_path / "kid.txt").read_text() == merged


@pytest.mark.spec("REPLAY-2")
async def test_a_time_out_is_replayed_as_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        lead__md="---\ntype: agent\nmodel: passthrough\nagents: [kid]\nchild_timeout_sec: 0.5\n"
        "default: true\n---\nLead.\n",
        kid__md="---\ntype: agent\nmodel: slow?seconds=30\n---\nRepeat.\n",
    )

    async def play(app: AgentApp) -> str:
        return await app["lead"].send('***CALL_TOOL agent__kid {"message": "hello"}')

    recorded, replayed, player = await twice(tmp_path, play)
    assert replayed == recorded
    assert "within the 0.5 s of `child_timeout_sec`" in recorded[0]
    assert player.left() == ()
