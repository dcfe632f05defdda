"""One runtime that carries many runs at once, each recorded by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest
from anyio import create_task_group

from fast_agent.app import FastAgent
from fast_agent.recording.cassette import Recorder, read_cassette
from fast_agent.recording.replayer import Replayer

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.steps.steps import Codec, Step, Steps, Work
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

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
    conversation = app.new_conversation(steps=steps)
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


SCRIPT = """\
steps:
  - text: first
  - text: second
  - choose: [{text: third}, {text: also third}]
"""


class Resumed(Recorder):
    """A run in its second life: some model requests were answered in the first one."""

    def __init__(self, path: Path, answered: list[JsonValue]) -> None:
        super().__init__(path)
        self._answered = answered

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        if step.kind == "model" and self._answered:
            return codec.read(self._answered.pop(0))
        return await super().ask(step, work, codec)


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_a_script_begins_with_each_run_and_goes_on_in_its_next_life(
    tmp_path: Path, kept: int
) -> None:
    (tmp_path / "sayer.script").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "sayer.md").write_text(
        "---\ntype: agent\nmodel: scripted?file=sayer.script\n---\nSay.\n", encoding="utf-8"
    )
    fast = FastAgent(cwd=tmp_path, ignore_config=True)
    fast.load_agents("sayer.md")

    async def say(app: AgentApp, steps: Steps) -> list[str]:
        conversation = app.new_conversation(steps=steps)
        try:
            agent = conversation.agent("sayer")
            return [(await agent.generate("next")).text for _ in range(3)]
        finally:
            await conversation.aclose()

    async with fast.run() as app:
        first = await say(app, Recorder(tmp_path / "first.jsonl"))
        again = await say(app, Recorder(tmp_path / "again.jsonl"))
        entries = read_cassette(tmp_path / "first.jsonl").entries
        gave = [entry.gave for key, entry in entries.items() if key.kind == "model"]
        resumed = await say(app, Resumed(tmp_path / "resumed.jsonl", gave[:kept]))
    assert first[:2] == ["first", "second"]
    assert first == again == resumed
