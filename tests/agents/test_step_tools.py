"""Tools in steps: what a run that continues is answered, and what it does again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from fast_agent.agents.budget import Meter
from fast_agent.agents.delegation.child_history import StepSource
from fast_agent.agents.events import Origin
from fast_agent.agents.history.transcript import Transcript
from fast_agent.agents.step_tools import StepToolset, call_agent_in_step, call_in_step
from fast_agent.agents.tool_calls import ChildCallBatch, TurnCallContext
from fast_agent.agents.turn_context import TOP
from fast_agent.errors import ToolError
from fast_agent.messages.history import text_of_result
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.models.model import ToolSpec, Usage
from fast_agent.steps.parts import Parts, StepRedactor
from fast_agent.steps.steps import NullSteps, Place, entered
from fast_agent.text.frozen import frozen
from fast_agent.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.steps.steps import Codec, Step, Work
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import Tool, ToolSource

T = TypeVar("T")

pytestmark = pytest.mark.anyio

CALL = ToolCall("call-1", "look", {"at": "this"})


class KeptSteps(NullSteps):
    """Steps that keep each answer as JSON, and give it in the next life."""

    def __init__(self) -> None:
        self.kept: dict[str, JsonValue] = {}
        self.pieces: dict[str, JsonValue] = {}
        self.asked: list[Step] = []

    @property
    def parts(self) -> Parts:
        return Parts(StepRedactor(), self.pieces.__setitem__)

    def part(self, digest: str) -> JsonValue:
        return self.pieces[digest]

    async def ask(self, step: Step, work: Work[T], codec: Codec[T]) -> T:
        self.asked.append(step)
        if step.name not in self.kept:
            self.kept[step.name] = codec.write(await work())
        return codec.read(self.kept[step.name])


@frozen
class Looking:
    """A tool that notes its calls."""

    look: Callable[[ToolCall, Any], ToolResult]
    source: ToolSource = "function"
    server_name: str | None = None
    repeatable: bool = False
    spec: ToolSpec = ToolSpec("look", "Look.", {"type": "object"})

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return self.look(call, context)


def context() -> ToolContext:
    return ToolContext(agent_name="ann", turn_id="t", call_id=CALL.id, correlation_id="c")


def found(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, (TextContent(f"saw {call.arguments['at']}"),), structured={"n": 1})


async def test_a_tool_that_answered_is_not_called_again() -> None:
    steps, seen = KeptSteps(), list[ToolCall]()

    def look(call: ToolCall, _: object) -> ToolResult:
        seen.append(call)
        return found(call)

    lives = [await call_in_step(Looking(look), CALL, Place(steps, ""), context()) for _ in range(2)]
    assert lives == [found(CALL)] * 2
    assert seen == [CALL]
    (step, _) = steps.asked
    assert (step.kind, step.name, step.agent) == ("tool", "call-1", "ann")
    assert step.asked == {"tool": "look", "arguments": {"at": "this"}}
    assert (step.repeatable, step.is_local, step.asks_in_steps) == (False, True, False)


@pytest.mark.parametrize("server", [None, "box"])
async def test_tools_are_listed_once_in_all_lives_of_a_run(server: str | None) -> None:
    steps, lists = KeptSteps(), list[str]()
    tool = Looking(lambda call, _: found(call), "mcp", server, repeatable=True)

    class Listing:
        async def tools(self) -> list[Tool]:
            lists.append("listed")
            return [tool]

    for _ in range(2):
        with entered(Place(steps, "")):
            (listed,) = await StepToolset("tools of `ann`", Listing()).tools()
        assert listed.spec == tool.spec
        assert (listed.source, listed.server_name, listed.repeatable) == ("mcp", server, True)
    assert lists == ["listed"]


async def test_history_files_are_read_once_in_all_lives_of_a_run() -> None:
    steps, reads = KeptSteps(), list[str]()

    async def read(child_calls: ChildCallBatch) -> list[Message]:
        del child_calls
        reads.append("history.md")
        return [Message.user("who?"), Message.assistant("kid")]

    for _ in range(2):
        with entered(Place(steps, "")):
            found = await StepSource("kid", read)(ChildCallBatch(Transcript(), print))
        assert [one.text for one in found] == ["who?", "kid"]
    assert reads == ["history.md"]


async def test_what_a_call_charged_is_charged_again_without_the_call() -> None:
    steps = KeptSteps()

    def look(call: ToolCall, given: Any) -> ToolResult:
        for meter in given.turn.meters:
            meter.count_request()
            meter.count_tool_call()
            meter.count_answer(Usage(10, 5))
        return found(call)

    counted: list[Usage] = []
    for _ in range(2):
        meter = Meter("ann")
        turn = TOP.below("t", (meter,), depth=0)
        given = TurnCallContext(
            agent_name="ann", turn_id="t", call_id=CALL.id, correlation_id="c",
            origin=Origin("ann", "t", None), turn=turn, index=0,
            child_calls=ChildCallBatch(Transcript(), print),
        )  # fmt: skip
        await call_in_step(Looking(look), CALL, Place(steps, ""), given, turn)
        counted.append(meter.usage)
    assert counted[0] == counted[1]
    assert (counted[0].requests, counted[0].tool_calls) == (1, 1)
    assert (counted[0].input_tokens, counted[0].output_tokens) == (10, 5)


async def test_an_agent_is_called_again_with_what_hooks_left_and_its_first_answer_is_given() -> (
    None
):
    steps, seen = KeptSteps(), list[Any]()
    made: list[Any] = []

    def look(call: ToolCall, _: object) -> ToolResult:
        seen.append(dict(call.arguments))
        made.append({"at": "that"})
        return ToolResult(call.id, (TextContent(f"answer {len(seen)}"),))

    tool = Looking(look, source="agent")
    noting = context(), made
    answers = [
        text_of_result(await call_agent_in_step(tool, CALL, Place(steps, ""), context(), noting))
        for _ in range(2)
    ]
    assert answers == ["answer 1", "answer 1"]
    assert seen == [{"at": "this"}, {"at": "that"}]
    assert {one.kind for one in steps.asked} == {"agent"}


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_tool_that_raises_is_an_error_result_unless_it_says_so_itself(
    is_ours: bool,
) -> None:
    def look(call: ToolCall, _: object) -> ToolResult:
        del call
        raise ToolError("no eyes") if is_ours else ValueError("no eyes")

    asking = call_in_step(Looking(look), CALL, Place(KeptSteps(), ""), context())
    if is_ours:
        with pytest.raises(ToolError, match="no eyes"):
            await asking
        return
    result = await asking
    assert result.is_error
    assert result.id == CALL.id
    assert "tool `look` failed" in text_of_result(result)
    assert "no eyes" in text_of_result(result)
