"""What is harder to record: models that servers ask for, smart agents, history files, resources."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.own_home import own_home

from fast_agent.app import FastAgent
from fast_agent.recording.cassette import Recorder, read_cassette
from fast_agent.recording.replayer import Replayer
from fast_agent.tools.human import HumanAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeAlias

    from fast_agent.agent_app import AgentApp
    from fast_agent.tools.human import HumanRequest

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
    entries = read_cassette(tmp_path / "run.jsonl").entries
    (call,) = [key for key in entries if key.kind == "tool"]
    assert [key for key in entries if key.kind == "model" and key.turn == call.inside]
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
    entries = read_cassette(tmp_path / "run.jsonl").entries
    (call,) = [key for key in entries if key.kind == "tool"]
    inner = [key for key in entries if key.kind == "model" and key.agent == "kid"]
    assert [key.turn.rpartition("/")[0] for key in inner] == [call.inside]


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


HOOKS = """\
from pathlib import Path

SEEN = Path(__file__).parent / "seen.txt"


def saw(text):
    with SEEN.open("a") as file:
        file.write(text + "\\n")


async def mark(ctx):
    saw(f"{ctx.hook_type} {ctx.iteration} {len(ctx.message_history)}")
    if ctx.hook_type == "before_llm_call" and not ctx.message.tool_results:
        ctx.message = type(ctx.message).user(ctx.message.text + " marked")


async def around(ctx, args, call_next):
    saw(f"around {ctx.tool_name}")
    return await call_next({"message": args["message"] + "!"})
"""

LEAD = """\
---
type: agent
default: true
model: scripted?file=lead.script
agents: [kid]
confirm: ["agent__*"]
tool_hooks: HOOKS
---
You lead.
"""

LEAD_SCRIPT = """\
steps:
  - calls: [{name: agent__kid, arguments: {message: one}}]
  - expect: "one!"
    text: done
"""

KID = "---\ntype: agent\nmodel: passthrough\n---\nHelp.\n"


class Yes:
    """A person who says yes, and counts."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Allow it."""
        assert "agent__kid" in request.message
        self.asked += 1
        return HumanAnswer(action="accept", content={"call": "yes"})


async def ask_lead(directory: Path, steps: Recorder | Replayer, human: Yes) -> Any:
    """Have the lead answer; returns what is to be the same in a replay."""
    fast = FastAgent(cwd=directory, environ={**own_home(directory), "PATH": "/usr/bin:/bin"})
    fast.load_agents(".")
    async with fast.run(steps=steps, human=human) as app:
        result = await app.agent("lead").generate("go")
        steps.check()
        return result.text, result.tree_usage, tuple(app.agent("lead").history)


AROUND = "[hooks.py:around]"
POINTS = "{before_llm_call: [hooks.py:mark], after_llm_call: [hooks.py:mark]}"


@pytest.mark.parametrize(
    ("hooks", "message", "calls"),
    [
        (AROUND, "one!", ["around agent__kid"]),
        (
            POINTS,
            "one",
            [
                "before_llm_call 1 0",
                "after_llm_call 1 1",
                "before_llm_call 2 2",
                "after_llm_call 2 3",
            ],
        ),
    ],
    ids=["around", "points"],
)
async def test_hooks_and_approvals_are_not_asked_again_by_a_replay(
    tmp_path: Path, hooks: str, message: str, calls: list[str]
) -> None:
    write(
        tmp_path,
        lead__md=LEAD.replace("HOOKS", hooks),
        kid__md=KID,
        hooks__py=HOOKS,
        lead__script=LEAD_SCRIPT.replace("one!", message),
    )
    person, path = Yes(), tmp_path / "run.jsonl"
    recorder = Recorder(path)
    recorded = await ask_lead(tmp_path, recorder, person)
    recorder.close()
    seen = (tmp_path / "seen.txt").read_text()
    assert recorded[0] == "done"
    assert recorded[2][0].text == ("go" if hooks == AROUND else "go marked")
    assert person.asked == 1
    assert seen.splitlines() == calls

    replayer = Replayer(read_cassette(path))
    assert await ask_lead(tmp_path, replayer, person) == recorded
    assert replayer.left() == ()
    assert person.asked == 1
    assert (tmp_path / "seen.txt").read_text() == seen


async def test_a_time_out_that_expired_expires_at_once_in_a_replay(tmp_path: Path) -> None:
    lead = "---\ntype: agent\nmodel: scripted?file=lead.script\nagents: [kid]\n"
    write(
        tmp_path,
        lead__md=f"{lead}default: true\nchild_timeout_sec: 0.2\n---\nLead.\n",
        kid__md=KID.replace("passthrough", "slow?seconds=30"),
        lead__script=LEAD_SCRIPT.replace("one!", "did not answer within"),
    )
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path)
    recorded = await ask_lead(tmp_path, recorder, Yes())
    recorder.close()
    assert recorded[0] == "done"
    assert await ask_lead(tmp_path, Replayer(read_cassette(path)), Yes()) == recorded

    text = (tmp_path / "lead.md").read_text()
    (tmp_path / "lead.md").write_text(text.replace("0.2", "3600"))
    # The child's request is cancelled as it was recorded, not after an hour.
    assert await ask_lead(tmp_path, Replayer(read_cassette(path)), Yes()) == recorded


async def test_notes_of_an_answer_are_replayed(tmp_path: Path) -> None:
    write(
        tmp_path,
        lead__md=KID.replace("passthrough", "[scripted?file=bad.script, passthrough]"),
        bad__script="steps:\n  - fail: overloaded\n    repeat: forever\n",
    )

    async def play(app: AgentApp) -> list[str]:
        heard: list[Any] = []
        await app.agent("lead").generate("go", listener=heard.append)
        return [event.message for event in heard if type(event).__name__ == "Warned"]

    recorded, replayed, _ = await twice(tmp_path, play)
    assert len(recorded[0]) == 1
    assert replayed == recorded
