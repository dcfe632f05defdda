"""A turn may be cancelled at any moment; what is left must be a conversation providers accept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import pass_seconds

from fast_agent.cards.agent_config import RequestParams
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]


async def pass_time(steps: int) -> None:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()


async def turn_cancelled_after(agent: LlmAgent, steps: int, *, text: str = "go") -> bool:
    """Cancel a turn after some passes of the loop; say whether it had not ended by then."""
    ended = False

    async def turn() -> None:
        nonlocal ended
        await agent.generate(text)
        ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(turn)
        await pass_time(steps)
        group.cancel_scope.cancel()
    return not ended


@pytest.mark.spec("TURN-7")
@given(
    steps=st.integers(0, 40),
    parallel=st.booleans(),
    waits=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    calls=st.lists(st.integers(1, 3), max_size=3),
)
def test_cancelled_anywhere_the_history_stays_valid(
    make_agent: MakeAgent,
    script: Script,
    doing: Doing,
    asking: Asking,
    steps: int,
    parallel: bool,
    waits: list[int],
    calls: list[int],
) -> None:
    given_to_model: list[ModelRequest] = []
    started: list[str] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        started.append(call.id)
        await pass_time(waits[len(started) % len(waits)])
        return "done"

    def answer(message: Message) -> Callable[[ModelRequest], object]:
        async def wait(request: ModelRequest) -> Message:
            await pass_time(waits[len(request.messages) % len(waits)])
            return message

        return wait

    asked = [
        asking(*((f"{turn}{n}", "w") for n in range(count))) for turn, count in enumerate(calls)
    ]
    agent = make_agent(
        script([*map(answer, asked), answer(Message.assistant("ok"))], given_to_model),
        tools=[doing("w", work)],
        params=RequestParams(parallel_tool_calls=parallel),
    )

    async def main() -> bool:
        cancelled = await turn_cancelled_after(agent, steps)
        assert check_validity(agent.history) == []
        recorded = {one.id for message in agent.history for one in message.tool_results}
        assert set(started) <= recorded, "the history knows of every call that was begun"
        await agent.generate("and now?")
        return cancelled

    cancelled = anyio.run(main)
    assert check_validity(agent.history) == []
    assert agent.history[-1].text == "ok"
    if cancelled and len(agent.history) > 2:
        assert any(one.stop_reason == "cancelled" for one in agent.history)
    for request in given_to_model:
        assert check_validity(request.messages) == []


@pytest.mark.anyio
async def test_what_finished_before_the_cancellation_keeps_its_result(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    begun = anyio.Event()

    async def work(call: ToolCall, context: ToolContext) -> str:
        if call.id == "slow":
            begun.set()
            await anyio.sleep(600)
        return "done"

    model = script([asking(("quick", "w"), ("slow", "w")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("w", work)])
    async with anyio.create_task_group() as group:
        group.start_soon(partial(agent.generate, "go"))
        await begun.wait()
        await pass_time(3)
        group.cancel_scope.cancel()
    quick, slow = agent.history[2].tool_results
    assert (quick.text, quick.is_error) == ("done", False)
    assert slow == ToolResult("slow", slow.content, is_error=True)
    assert "cancelled" in slow.text
    assert agent.history[-1].role == "assistant"


@pytest.mark.anyio
async def test_a_cancelled_request_keeps_the_users_message_and_says_so(
    make_agent: MakeAgent, script: Script
) -> None:
    async def sleep(request: ModelRequest) -> Message:
        pass_seconds(10)
        await anyio.sleep(600)
        return Message.assistant("late")

    agent = make_agent(script([sleep, Message.assistant("ok")]))
    with anyio.move_on_after(10):
        await agent.send("tell me about the sea")
    assert [(one.role, one.stop_reason) for one in agent.history] == [
        ("user", None),
        ("assistant", "cancelled"),
    ]
    assert agent.history[0].text == "tell me about the sea"
    assert await agent.send("go on") == "ok"


@pytest.mark.anyio
async def test_a_turn_cancelled_while_it_waits_for_another_does_nothing(
    make_agent: MakeAgent, script: Script
) -> None:
    release = anyio.Event()

    async def wait(request: ModelRequest) -> Message:
        await release.wait()
        return Message.assistant(request.messages[-1].text)

    agent = make_agent(script([wait]))
    async with anyio.create_task_group() as group:
        group.start_soon(agent.send, "first")
        await pass_time(2)
        with anyio.move_on_after(0.01):
            await agent.send("second")
        group.start_soon(agent.send, "third")
        await pass_time(2)
        release.set()
    texts = [one.text for one in agent.history]
    assert texts == ["first", "first", "third", "third"]
