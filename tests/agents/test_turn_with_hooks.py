from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.patience import pass_seconds

from fast_agent.agents.turn_context import TurnContext
from fast_agent.errors import RunError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message, ToolCall
from fast_agent.sessions.cumulative import CumulativeTranscript
from fast_agent.tools.hooks import Hook, TurnHooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.hooks import TurnHookContext
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]
    HookFunction: TypeAlias = Callable[[TurnHookContext], Awaitable[None]]

pytestmark = pytest.mark.anyio

POINTS: tuple[HookPoint, ...] = (
    "before_llm_call",
    "after_llm_call",
    "before_tool_call",
    "after_tool_call",
    "after_turn_complete",
)


def hooks(**functions: HookFunction) -> TurnHooks:
    return TurnHooks(
        {point: [Hook(point, functions[point])] for point in POINTS if point in functions}
    )


async def work(call: ToolCall, context: ToolContext) -> str:
    return "4"


@pytest.mark.spec("TOOL-5")
async def test_hooks_run_around_requests_and_calls_in_order(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    seen: list[tuple[str, str, int, int, int]] = []

    async def note(ctx: TurnHookContext) -> None:
        kept = len(ctx.message_history)
        requests = ctx.usage.requests
        seen.append((ctx.hook_type, ctx.message.role, kept, ctx.iteration, requests))

    model = script([asking(("c", "w")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("w", work)], hooks=hooks(**dict.fromkeys(POINTS, note)))
    await agent.send("go")
    assert seen == [
        ("before_llm_call", "user", 0, 1, 0),
        ("after_llm_call", "assistant", 1, 1, 1),
        ("before_tool_call", "assistant", 1, 1, 1),
        ("after_tool_call", "user", 2, 1, 1),
        ("before_llm_call", "user", 2, 2, 1),
        ("after_llm_call", "assistant", 3, 2, 2),
        ("after_turn_complete", "assistant", 3, 2, 2),
    ]


async def test_a_hook_may_change_what_the_model_hears_and_says(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    heard: list[ModelRequest] = []

    async def before(ctx: TurnHookContext) -> None:
        if not ctx.message.tool_results:
            ctx.message = Message.user("louder " + ctx.message.text)

    async def after(ctx: TurnHookContext) -> None:
        if ctx.message.text == "plain":
            ctx.message = Message("assistant", (), (ToolCall("c", "w"),), stop_reason="toolUse")

    model = script([Message.assistant("plain"), Message.assistant("ok")], heard)
    both = hooks(before_llm_call=before, after_llm_call=after)
    agent = make_agent(model, tools=[doing("w", work)], hooks=both)
    assert await agent.send("go") == "ok"
    assert heard[0].messages[0].text == "louder go"
    assert agent.history[0].text == "louder go"
    assert agent.history[2].tool_results[0].text == "4"
    assert check_validity(agent.history) == []


async def test_a_replaced_answer_may_keep_the_ids_of_its_calls(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    async def after(ctx: TurnHookContext) -> None:
        ctx.message = Message("assistant", (), ctx.message.tool_calls, stop_reason="toolUse")

    model = script([asking(("c", "w"), text="let me see")])
    agent = make_agent(
        model, tools=[doing("w", work)], hooks=hooks(after_llm_call=after), max_iterations=2
    )
    await agent.send("go")
    assert agent.history[1].tool_calls[0].id == "c"


@pytest.mark.parametrize("point", POINTS)
async def test_a_hook_that_fails_ends_the_turn_and_leaves_a_valid_history(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, point: HookPoint
) -> None:
    async def fail(ctx: TurnHookContext) -> None:
        raise ValueError("no")

    model = script([asking(("c", "w")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("w", work)], hooks=hooks(**{point: fail}))
    with pytest.raises(RunError, match=f"hook `{point}` failed"):
        await agent.send("go")
    assert check_validity(agent.history) == []
    assert not len(agent.history) or agent.history[-1].role == "assistant"


@pytest.mark.parametrize("point", POINTS)
async def test_a_turn_cancelled_in_a_hook_leaves_a_valid_history(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, point: HookPoint
) -> None:
    async def wait(ctx: TurnHookContext) -> None:
        pass_seconds(10)
        await anyio.sleep_forever()

    model = script([asking(("c", "w")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("w", work)], hooks=hooks(**{point: wait}))
    with anyio.move_on_after(10):
        await agent.send("go")
    assert check_validity(agent.history) == []
    assert agent.history[-1].role == "assistant"
    answered = [one.text for message in agent.history for one in message.tool_results]
    if point == "after_tool_call":
        assert answered == ["4"], "what a tool gave is not lost"
    if point == "after_turn_complete":
        assert agent.history[-1].text == "ok"


async def test_a_turn_that_is_cancelled_in_its_last_hook_is_listed_once(
    make_agent: MakeAgent, script: Script
) -> None:
    reached = anyio.Event()

    async def wait(ctx: TurnHookContext) -> None:
        reached.set()
        await anyio.sleep_forever()

    transcript = CumulativeTranscript()
    agent = make_agent(
        script([Message.assistant("done")]),
        hooks=hooks(after_turn_complete=wait),
        context=TurnContext(transcript=transcript),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.send, "go")
        await reached.wait()
        tasks.cancel_scope.cancel()
    assert [message.text for message in agent.history] == ["go", "done"]
    assert [message.text for entry in transcript for message in entry.messages] == [
        "go",
        "done",
    ]
