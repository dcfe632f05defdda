"""One runtime that carries many runs at once, each recorded by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anyio import create_task_group

from fast_agent.app import FastAgent
from fast_agent.recording.cassette import read_cassette
from fast_agent.recording.recorder import Recorder
from fast_agent.recording.replayer import Replayer

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.steps.steps import Steps

pytestmark = pytest.mark.anyio

TOOLS = "def add(a: int, b: int) -> int:\n    return a + b\n"
CARD = "---\ntype: agent\nmodel: passthrough\nfunction_tools: [tools.py:add]\n---\nYou add.\n"
RUNS = 20


def _program(directory: Path) -> FastAgent:
    (directory / "tools.py").write_text(TOOLS, encoding="utf-8")
    (directory / "adder.md").write_text(CARD, encoding="utf-8")
    fast = FastAgent(cwd=directory, ignore_config=True)
    fast.load_agents("adder.md")
    return fast


async def _answer(app: AgentApp, number: int, steps: Steps) -> str:
    conversation = app.cast(steps=steps)
    try:
        message = f'***CALL_TOOL add {{"a": {number}, "b": 1}}'
        return (await conversation.agent("adder").generate(message)).text
    finally:
        await conversation.aclose()


async def test_runs_of_one_runtime_are_recorded_and_replayed_each_by_itself(
    tmp_path: Path,
) -> None:
    recorders = [Recorder(tmp_path / f"{number}.jsonl") for number in range(RUNS)]
    answers: dict[int, str] = {}

    async def run(app: AgentApp, number: int) -> None:
        answers[number] = await _answer(app, number, recorders[number])

    async with _program(tmp_path).run() as app, create_task_group() as group:
        for number in range(RUNS):
            group.start_soon(run, app, number)
    assert answers == {number: str(number + 1) for number in range(RUNS)}
    (tmp_path / "tools.py").write_text(TOOLS.replace("a + b", "0"), encoding="utf-8")
    async with _program(tmp_path).run() as app:
        for number, recorder in enumerate(recorders):
            recorder.close()
            cassette = read_cassette(tmp_path / f"{number}.jsonl")
            assert sum(key.kind == "model" for key in cassette.entries) == 2
            replayer = Replayer(cassette)
            assert await _answer(app, number, replayer) == answers[number]
            assert replayer.left() == ()


async def test_a_program_run_inside_a_recorded_one_is_not_recorded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "outer.jsonl")
    program = _program(tmp_path)
    async with program.run(steps=recorder) as app:
        async with program.run() as inner:
            await inner["adder"].generate("inner")
        await app["adder"].generate("outer")
    recorder.close()
    kinds = [key.kind for key in read_cassette(tmp_path / "outer.jsonl").entries]
    assert kinds.count("model") == 1
