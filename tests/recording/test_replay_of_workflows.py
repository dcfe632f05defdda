"""Every kind of workflow, recorded and replayed with its tasks in other orders."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from anyio.lowlevel import checkpoint

from fast_agent.app import FastAgent
from fast_agent.recording.cassette import Recorder, read_cassette
from fast_agent.recording.replayer import Replayer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from fast_agent.agents.events import Event
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.steps.steps import Steps

pytestmark = pytest.mark.anyio

REPLAYS = 20
MEMBER = "type: agent\nmodel: scripted?file=member.script\ninstruction: Help.\nagents: [coin]\n"
COIN = "type: agent\nmodel: scripted?file=coin.script\ninstruction: Toss.\n"
CARDS = {
    "chain": "type: chain\nsequence: [one, two, one]\ncumulative: true\n",
    "parallel": "type: parallel\nfan_out: [one, two, one, two]\nfan_in: coin\n",
    "router": "type: router\nagents: [one, two]\ninstruction: Choose.\n"
    "model: scripted?file=route.script\n",
    "evaluator_optimizer": "type: evaluator_optimizer\ngenerator: one\nevaluator: judge\n",
    "orchestrator": "type: orchestrator\nagents: [one, two]\ninstruction: Plan.\n"
    "model: scripted?file=plan.script\nplan_iterations: 1\n",
    "iterative_planner": "type: iterative_planner\nagents: [one, two]\ninstruction: Plan.\n"
    "model: scripted?file=next.script\nplan_iterations: 2\n",
    "MAKER": "type: MAKER\nworker: coin\nk: 3\nmax_samples: 60\n",
    "agent": "type: agent\nagents: [one, vote, all]\ninstruction: Lead.\n"
    "model: scripted?file=lead.script\n",
}
CARDS["shared"] = "type: parallel\nfan_out: [left, right]\n"
HELPERS = {
    "left": "type: chain\nsequence: [coin, one, talker]\n",
    "right": "type: chain\nsequence: [coin, talker, talker]\n",
    "talker": "type: agent\nmodel: scripted?file=coin.script\ninstruction: I remember.\n",
    "vote": "type: MAKER\nworker: coin\nk: 2\n",
    "all": "type: parallel\nfan_out: [one, two]\n",
    "judge": "type: agent\nmodel: scripted?file=judge.script\ninstruction: Judge.\n",
}
TASKS = (
    '[{"agent": "one", "description": "a"}, {"agent": "one", "description": "a"},'
    ' {"agent": "two", "description": "b"}]'
)
SCRIPTS = {
    "member": "seed: 3\nsteps:\n  - choose:\n"
    "      - {call: [{name: agent__coin, arguments: {message: toss}},"
    " {name: agent__coin, arguments: {message: toss}}]}\n"
    "      - {text: done}\n      - {text: ready}\n    repeat: forever\n",
    "coin": "seed: 4\nsteps:\n  - choose: [{text: heads}, {text: tails}, {text: edge}]\n"
    "    repeat: forever\n",
    "route": 'steps:\n  - text: \'{"agent": "two", "confidence": "high",'
    ' "reasoning": "so"}\'\n    repeat: forever\n',
    "judge": 'steps:\n  - text: \'{"rating": "POOR", "feedback": "no",'
    ' "needs_improvement": true, "focus_areas": []}\'\n    repeat: forever\n',
    "plan": f'steps:\n  - text: \'{{"steps": [{{"description": "s", "tasks": {TASKS}}}]}}\'\n'
    "  - text: all done\n    repeat: forever\n",
    "next": f'steps:\n  - text: \'{{"description": "s", "tasks": {TASKS},'
    ' "is_complete": true}\'\n  - text: all done\n    repeat: forever\n',
    "lead": "steps:\n  - call: [{name: agent__one, arguments: {message: go}},"
    " {name: agent__one, arguments: {message: go}}, {name: agent__vote, arguments: {message: go}},"
    " {name: agent__vote, arguments: {message: go}},"
    " {name: agent__all, arguments: {message: go}}]\n"
    "  - text: all done\n    repeat: forever\n",
}


def program(directory: Path, kind: str) -> FastAgent:
    """Write and load the cards of one type."""
    cards = {"top": CARDS[kind] + "default: true\n", "one": MEMBER, "two": MEMBER, "coin": COIN}
    for name, text in (cards | HELPERS).items():
        (directory / f"{name}.yaml").write_text(text)
    for name, text in SCRIPTS.items():
        (directory / f"{name}.script").write_text(text)
    fast = FastAgent(cwd=directory, environ={}, ignore_config=True)
    fast.load_agents(".")
    return fast


async def run(fast: FastAgent, tape: Steps) -> tuple[TurnResult, list[str]]:
    """Return the result of a turn, and its events in an order of their own."""
    events: list[Event] = []
    async with fast.run(steps=tape, listener=events.append) as app:
        result = await app["top"].generate("go")
    return result, sorted(map(repr, events))


def shuffler(seed: int) -> Callable[[], Awaitable[None]]:
    """Return a wait of a random number of rounds of the event loop."""
    chance = random.Random(seed)

    async def pause() -> None:
        for _ in range(chance.randrange(6)):
            await checkpoint()

    return pause


@pytest.mark.spec("REPLAY-2", "REPLAY-3")
@pytest.mark.parametrize("kind", CARDS)
async def test_a_workflow_replays_in_any_order(tmp_path: Path, kind: str) -> None:
    fast = program(tmp_path, kind)
    recorder = Recorder(tmp_path / "run.jsonl")
    recorded, events = await run(fast, recorder)
    recorder.close()
    cassette = read_cassette(tmp_path / "run.jsonl")
    for seed in range(REPLAYS):
        player = Replayer(cassette, pause=shuffler(seed))
        result, heard = await run(fast, player)
        player.check()
        assert player.left() == ()
        assert result == recorded
        assert heard == events
