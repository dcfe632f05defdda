from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.errors import RunError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message, ToolResult
from fast_agent.models.usage import Usage
from fast_agent.tools.hooks import Hook
from fast_agent.tools.turn_hooks import TurnHookContext, TurnHooks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.cards.agent_config import HookPoint

pytestmark = pytest.mark.anyio

QUESTION = Message.user("why?")
ANSWER = Message.assistant("because")
RESULTS = Message("user", tool_results=(ToolResult("c1"), ToolResult("c2")))


async def run(
    point: HookPoint, message: Message, *functions: Callable[..., Awaitable[object]]
) -> Message:
    hooks = TurnHooks({point: [Hook(f"hooks.py:{f.__name__}", f) for f in functions]})
    return await hooks.run(
        point,
        message,
        message_history=(QUESTION,),
        iteration=2,
        agent_name="writer",
        usage=Usage(requests=1),
    )


async def test_a_hook_sees_where_the_turn_stands() -> None:
    seen: list[object] = []

    async def see(ctx: TurnHookContext) -> None:
        seen.extend([ctx.hook_type, ctx.message, ctx.message_history, ctx.iteration])
        seen.extend([ctx.agent_name, ctx.usage])

    assert await run("after_llm_call", ANSWER, see) is ANSWER
    assert seen == ["after_llm_call", ANSWER, (QUESTION,), 2, "writer", Usage(requests=1)]


async def test_has_tells_where_there_are_hooks() -> None:
    async def hook(ctx: TurnHookContext) -> None: ...

    hooks = TurnHooks({"after_llm_call": [Hook("h", hook)], "before_llm_call": []})
    assert hooks.has("after_llm_call")
    assert not hooks.has("before_llm_call")
    assert not hooks.has("after_turn_complete")


@pytest.mark.spec("TOOL-5")
async def test_hooks_follow_each_other_and_each_sees_what_the_last_one_made() -> None:
    async def louder(ctx: TurnHookContext) -> None:
        ctx.message = replace(ctx.message, content=(TextContent(ctx.message.text + "!"),))

    assert (await run("before_llm_call", QUESTION, louder, louder)).text == "why?!!"
    assert (await run("after_llm_call", ANSWER, louder)).text == "because!"
    assert QUESTION.text == "why?"


@pytest.mark.parametrize("point", ["before_tool_call", "after_tool_call", "after_turn_complete"])
async def test_elsewhere_the_message_cannot_be_replaced(point: HookPoint) -> None:
    async def replace_it(ctx: TurnHookContext) -> None:
        ctx.message = ANSWER

    with pytest.raises(RunError) as caught:
        await run(point, ANSWER, replace_it)
    assert f"`ctx.message` cannot be replaced in `{point}`" in caught.value.message
    assert caught.value.hint == "it can in `before_llm_call` and `after_llm_call`"


@pytest.mark.parametrize(
    ("point", "message", "new", "words"),
    [
        ("before_llm_call", QUESTION, ANSWER, "must have the role `user`"),
        ("after_llm_call", ANSWER, QUESTION, "must have the role `assistant`"),
        ("after_llm_call", ANSWER, "text", "must be a `Message`, not a `str`"),
        ("before_llm_call", RESULTS, QUESTION, "must carry a result for each tool call"),
        (
            "before_llm_call",
            RESULTS,
            replace(RESULTS, tool_results=RESULTS.tool_results[::-1]),
            "must carry a result for each tool call, in order",
        ),
    ],
)
async def test_a_replacement_must_fit(
    point: HookPoint, message: Message, new: Any, words: str
) -> None:
    async def replace_it(ctx: TurnHookContext) -> None:
        ctx.message = new

    with pytest.raises(RunError, match=words):
        await run(point, message, replace_it)


async def test_nothing_else_can_be_set() -> None:
    async def spoil(ctx: Any) -> None:
        ctx.iteration = 9

    with pytest.raises(RunError, match="AttributeError"):
        await run("before_llm_call", QUESTION, spoil)


async def test_results_may_be_replaced_by_results_of_the_same_calls() -> None:
    shorter = replace(RESULTS, tool_results=(ToolResult("c1", is_error=True), ToolResult("c2")))

    async def shorten(ctx: TurnHookContext) -> None:
        ctx.message = shorter

    assert await run("before_llm_call", RESULTS, shorten) is shorter


async def test_a_hook_that_fails_ends_the_turn_and_is_named_with_its_line() -> None:
    def inner() -> None:
        raise LookupError("no such word")

    async def fail(ctx: TurnHookContext) -> None:
        inner()

    line = inner.__code__.co_firstlineno + 1
    with pytest.raises(RunError) as caught:
        await run("after_llm_call", ANSWER, fail)
    assert caught.value.message == (
        f"hook `hooks.py:fail` failed in `after_llm_call` at line {line}: LookupError: no such word"
    )
    assert isinstance(caught.value.__cause__, LookupError)
