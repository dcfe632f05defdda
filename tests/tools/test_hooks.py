from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mcp.types
import pytest

from fast_agent.errors import RunError
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.models.model import Usage
from fast_agent.tools.functions.function import FunctionTool, ToolOptions, tool
from fast_agent.tools.hooks import (
    Hook,
    HookedTool,
    ToolHookContext,
    TurnHookContext,
    TurnHooks,
    wrong_hook,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.tools.hooks import CallNext
    from fast_agent.tools.tool import ToolContext


pytestmark = pytest.mark.anyio


@tool(repeatable=False)
async def add(a: int, b: int = 0) -> int:
    return a + b


def hooked(*functions: Callable[..., Awaitable[object]]) -> HookedTool:
    hooks = [Hook(f"hooks.py:{function.__name__}", function) for function in functions]
    return HookedTool(FunctionTool(add), hooks)


async def call(made: HookedTool, context: ToolContext, **arguments: int) -> ToolResult:
    return await made.call(ToolCall("c1", "add", arguments), context)


def test_a_hooked_tool_looks_like_the_tool() -> None:
    made, plain = hooked(), FunctionTool(add)
    assert made.spec == plain.spec
    assert (made.source, made.server_name, made.repeatable) == ("function", None, False)


@pytest.mark.spec("TOOL-4")
async def test_the_first_hook_is_the_outermost(context: ToolContext) -> None:
    order: list[str] = []

    async def first(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        order.append("first in")
        result = await call_next(args)
        order.append("first out")
        return result

    async def second(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        order.append("second in")
        result = await call_next()
        order.append("second out")
        return result

    result = await call(hooked(first, second), context, a=1, b=2)
    assert result == ToolResult("c1", (TextContent("3"),))
    assert order == ["first in", "second in", "second out", "first out"]


async def test_a_hook_sees_the_call(context: ToolContext) -> None:
    seen: list[ToolHookContext] = []

    async def see(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        seen.append(ctx)
        return await call_next(args)

    await call(hooked(see), context, a=1)
    (ctx,) = seen
    assert ctx.agent_name == "writer"
    assert ctx.server_name is None
    assert ctx.tool_name == "add"
    assert ctx.tool_source == "function"
    assert ctx.tool_use_id == "c1"
    assert ctx.correlation_id == "r1"


@pytest.mark.spec("TOOL-4")
async def test_a_hook_changes_arguments_and_the_call_keeps_its_own(context: ToolContext) -> None:
    async def double(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        return await call_next({"a": args["a"] * 2})

    async def in_place(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        args["b"] = 100
        return await call_next()

    asked = ToolCall("c1", "add", {"a": 3, "b": 1})
    assert (await hooked(double).call(asked, context)).text == "6"
    assert (await hooked(in_place, double).call(asked, context)).text == "6"
    assert (await hooked(double, in_place).call(asked, context)).text == "106"
    assert asked.arguments == {"a": 3, "b": 1}


async def test_changed_arguments_are_checked_like_any(context: ToolContext) -> None:
    async def spoil(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        return await call_next({"a": "many"})

    result = await call(hooked(spoil), context, a=1)
    assert result.is_error
    assert "`a`" in result.text


@pytest.mark.spec("TOOL-4")
async def test_a_hook_skips_the_call_or_calls_past_the_others(context: ToolContext) -> None:
    async def skip(ctx: ToolHookContext, args: Any, call_next: CallNext) -> str:
        return "not today"

    async def never(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        raise AssertionError

    async def past(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        return await ctx.original_tool_func({"a": 40, "b": 2})

    assert (await call(hooked(skip, never), context, a=1)).text == "not today"
    assert (await call(hooked(past, never), context, a=1)).text == "42"


async def test_a_hook_may_call_again(context: ToolContext) -> None:
    async def twice(ctx: ToolHookContext, args: Any, call_next: CallNext) -> str:
        first, second = await call_next(args), await call_next({"a": 5})
        return f"{first.text} then {second.text}"

    assert (await call(hooked(twice), context, a=1)).text == "1 then 5"


@pytest.mark.parametrize(
    "value",
    [
        "no",
        TextContent("no"),
        ToolResult("else", (TextContent("no"),)),
        mcp.types.CallToolResult(content=[mcp.types.TextContent(text="no")]),
        {"content": [{"type": "text", "text": "no"}]},
    ],
)
async def test_a_hook_may_return_a_result_in_any_form(value: object, context: ToolContext) -> None:
    async def answer(ctx: ToolHookContext, args: Any, call_next: CallNext) -> object:
        return value

    assert await call(hooked(answer), context, a=1) == ToolResult("c1", (TextContent("no"),))


async def test_a_hook_that_fails_is_named_in_an_error_result(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        raise PermissionError("not on Sundays")

    with caplog.at_level(logging.ERROR):
        result = await call(hooked(fail), context, a=1)
    assert result.is_error
    assert result.text == "hook `hooks.py:fail` failed: PermissionError: not on Sundays"
    assert "Traceback" in caplog.text


async def test_a_hook_that_forgets_to_return_is_reported(context: ToolContext) -> None:
    async def forget(ctx: ToolHookContext, args: Any, call_next: CallNext) -> None:
        await call_next(args)

    result = await call(hooked(forget), context, a=1)
    assert result.is_error
    assert "hook `hooks.py:forget` failed: it returned nothing" in result.text
    assert "return what `call_next` returned" in result.text


async def test_what_are_no_arguments_is_refused_with_its_type(context: ToolContext) -> None:
    async def confuse(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        return await call_next(args["a"])

    result = await call(hooked(confuse), context, a=1)
    assert result.is_error
    assert "`call_next` was given a `int`, not the arguments" in result.text


async def test_a_result_in_a_string_is_its_text(context: ToolContext) -> None:
    async def quote(ctx: ToolHookContext, args: Any, call_next: CallNext) -> str:
        return f"said: {await call_next()}"

    result = await call(hooked(quote), context, a=1)
    assert result.text.startswith("said: ")
    assert "ToolResult" not in result.text


async def test_an_inner_hook_that_fails_is_seen_by_the_outer_one(context: ToolContext) -> None:
    async def fail(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        raise ValueError

    async def fix(ctx: ToolHookContext, args: Any, call_next: CallNext) -> object:
        result = await call_next(args)
        return "fixed" if result.is_error else result

    assert (await call(hooked(fix, fail), context, a=1)).text == "fixed"


class Broken:
    """A tool that breaks its word and raises."""

    spec = FunctionTool(add, ToolOptions(name="broken")).spec
    source = "runtime"
    server_name = None
    repeatable = True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        raise ConnectionError("gone")


async def test_what_a_tool_raises_is_not_blamed_on_a_hook(context: ToolContext) -> None:
    async def through(ctx: ToolHookContext, args: Any, call_next: CallNext) -> ToolResult:
        return await call_next(args)

    async def catch(ctx: ToolHookContext, args: Any, call_next: CallNext) -> object:
        try:
            return await call_next(args)
        except ConnectionError:
            return "caught"

    broken: Any = Broken()
    with pytest.raises(ConnectionError, match="gone"):
        await call(HookedTool(broken, [Hook("h", through)]), context)
    assert (await call(HookedTool(broken, [Hook("h", catch)]), context)).text == "caught"


async def three(ctx: object, args: Mapping[str, object], call_next: object) -> None: ...
async def one(ctx: object) -> None: ...
def not_async(ctx: object) -> None: ...


class CallableHook:
    async def __call__(self, ctx: object) -> None: ...


@pytest.mark.spec("TOOL-8")
@pytest.mark.parametrize(
    ("function", "parameters", "words"),
    [
        (three, ("ctx", "args", "call_next"), None),
        (one, ("ctx",), None),
        (CallableHook(), ("ctx",), None),
        (one, ("ctx", "args", "call_next"), "cannot be called with (ctx, args, call_next)"),
        (not_async, ("ctx",), "is not a coroutine function (`async def`)"),
        (3, ("ctx",), "is not callable"),
    ],
)
def test_signatures(function: object, parameters: tuple[str, ...], words: str | None) -> None:
    assert wrong_hook(function, parameters) == words


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


async def test_a_hook_that_asks_for_what_the_context_has_not_is_told_what_it_has() -> None:
    async def ask(ctx: Any) -> None:
        print(ctx.agent.name)

    with pytest.raises(RunError, match="no attribute 'agent'") as caught:
        await run("after_llm_call", ANSWER, ask)
    assert "`agent_name`, `hook_type`, `iteration`, `message`" in (caught.value.hint or "")
