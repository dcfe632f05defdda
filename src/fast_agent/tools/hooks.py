"""Hooks around tool calls: functions that see, change or replace a call and its result.

A hook is `async (ctx, args, call_next)` and returns the result. The first hook of a card's list is
the outermost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import iscoroutinefunction, signature
from logging import getLogger
from traceback import walk_tb
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.errors import RunError, ToolError
from fast_agent.messages.message import Message, ToolResult
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import result_of, said
from fast_agent.tools.toolbox import WrappedTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.messages.message import ToolCall
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import Tool, ToolContext, ToolSource

log = getLogger(__name__)

CallNext: TypeAlias = "Callable[..., Awaitable[ToolResult]]"
"""`await call_next(args)` continues inwards; without `args`, with unchanged arguments."""


@frozen
class Hook:
    """A hook function and what it is called in messages.

    Args:
        name: As the card has it, such as `hooks.py:audit`, or the function's name.
        function: The coroutine function.
        keep: Anything that must live as long as the hook, such as the loader of its file.
    """

    name: str
    function: Callable[..., Awaitable[object]]
    keep: object = None


@frozen(kw_only=True)
class ToolHookContext:
    """The call a hook stands around.

    Args:
        agent_name: The agent whose turn it is.
        server_name: The MCP server the tool belongs to, or None.
        tool_name: The tool's name as the model sees it.
        tool_source: Where the tool comes from.
        tool_use_id: The id of the call.
        correlation_id: One id for everything a request set off, across agents.
        original_tool_func: Calls the tool with the arguments given, past every hook.
    """

    agent_name: str
    server_name: str | None
    tool_name: str
    tool_source: ToolSource
    tool_use_id: str
    correlation_id: str
    original_tool_func: Callable[[JsonObject], Awaitable[ToolResult]]


class HookedTool(WrappedTool):
    """A tool with hooks around every call.

    Args:
        tool: The tool.
        hooks: The hooks, the outermost first.
    """

    __slots__ = ("_hooks",)

    def __init__(self, tool: Tool, hooks: Sequence[Hook]) -> None:
        super().__init__(tool)
        self._hooks = tuple(hooks)

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Call the tool through the hooks.

        Args:
            call: The call.
            context: What the tool may know of it.

        Returns:
            What the outermost hook returned; an error result naming the hook when one failed.
        """
        hooked = _HookedCall(self._tool, self._hooks, call, context)
        return await hooked.go(0, dict(call.arguments))


class _HookedCall:
    """One call on its way inwards."""

    __slots__ = ("_call", "_context", "_hook_context", "_hooks", "_raised", "_tool")

    def __init__(
        self, tool: Tool, hooks: tuple[Hook, ...], call: ToolCall, context: ToolContext
    ) -> None:
        self._tool = tool
        self._hooks = hooks
        self._call = call
        self._context = context
        self._raised: Exception | None = None
        self._hook_context = ToolHookContext(
            agent_name=context.agent_name,
            server_name=tool.server_name,
            tool_name=tool.spec.name,
            tool_source=tool.source,
            tool_use_id=call.id,
            correlation_id=context.correlation_id,
            original_tool_func=self._call_tool,
        )

    async def go(self, depth: int, arguments: dict[str, object]) -> ToolResult:
        """Call the hook at `depth`, or the tool behind the last one."""
        if depth == len(self._hooks):
            return await self._call_tool(cast("JsonObject", arguments))
        hook = self._hooks[depth]

        async def call_next(args: object = None) -> ToolResult:
            if not isinstance(args, Mapping | None):
                raise ToolError(
                    f"`call_next` was given a `{type(args).__name__}`, not the arguments",
                    hint="pass a mapping of arguments by their names, or nothing",
                )
            given = cast("Mapping[str, object] | None", args)
            return await self.go(depth + 1, arguments if given is None else dict(given))

        try:
            value = await hook.function(self._hook_context, arguments, call_next)
            if value is None:
                hint = "return what `call_next` returned, or a result"
                raise ToolError("it returned nothing", hint=hint)
            return result_of(self._call.id, value)
        except Exception as error:  # the boundary of a hook
            if error is self._raised:
                # The tool's own failure on its way out, not the hook's.
                raise
            log.exception("hook `%s` failed", hook.name)
            return ToolResult.error(self._call.id, f"hook `{hook.name}` failed: {said(error)}")

    async def _call_tool(self, arguments: JsonObject) -> ToolResult:
        try:
            return await self._tool.call(replace(self._call, arguments=arguments), self._context)
        except Exception as error:
            self._raised = error
            raise


def wrong_hook(function: object, parameters: tuple[str, ...]) -> str | None:
    """Return what is wrong with a hook function's signature.

    Args:
        function: The function.
        parameters: What it is called with, by position.

    Returns:
        What is wrong, to follow the function's name; None when nothing is.
    """
    if not callable(function):
        return "is not callable"
    call = function.__call__
    if not (iscoroutinefunction(function) or iscoroutinefunction(call)):
        return "is not a coroutine function (`async def`)"
    try:
        signature(cast("Callable[..., object]", function)).bind(*parameters)
    except (TypeError, ValueError):
        return f"cannot be called with ({', '.join(parameters)})"
    return None


_REPLACEABLE: Mapping[HookPoint, str] = {"before_llm_call": "user", "after_llm_call": "assistant"}


class TurnHookContext:
    """Where a turn stands. Only `message` can be set, and only where the hook point allows it.

    Args:
        hook_type: The hook point.
        message: The message it is about.
        message_history: The conversation before that message.
        iteration: The model request of the turn, from 1.
        agent_name: The agent whose turn it is.
        usage: What the turn used so far.
    """

    __slots__ = (
        "_agent_name",
        "_history",
        "_hook_type",
        "_iteration",
        "_message",
        "_usage",
    )

    def __init__(
        self,
        *,
        hook_type: HookPoint,
        message: Message,
        message_history: Sequence[Message],
        iteration: int,
        agent_name: str,
        usage: Usage,
    ) -> None:
        self._hook_type: HookPoint = hook_type
        self._message = message
        self._history = message_history
        self._iteration = iteration
        self._agent_name = agent_name
        self._usage = usage

    @property
    def hook_type(self) -> HookPoint:
        """The hook point."""
        return self._hook_type

    @property
    def message_history(self) -> Sequence[Message]:
        """The conversation before the message; it cannot be changed."""
        return self._history

    @property
    def iteration(self) -> int:
        """The model request of the turn, from 1."""
        return self._iteration

    @property
    def agent_name(self) -> str:
        """The agent whose turn it is."""
        return self._agent_name

    @property
    def usage(self) -> Usage:
        """What the turn used so far."""
        return self._usage

    @property
    def message(self) -> Message:
        """The message the hook point is about."""
        return self._message

    @message.setter
    def message(self, new: Message) -> None:
        role = _REPLACEABLE.get(self._hook_type)
        if role is None:
            points = " and ".join(f"`{point}`" for point in _REPLACEABLE)
            msg = f"`ctx.message` cannot be replaced in `{self._hook_type}`"
            raise RunError(msg, hint=f"it can in {points}")
        if not isinstance(new, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise RunError(f"`ctx.message` must be a `Message`, not a `{type(new).__name__}`")
        if new.role != role:
            raise RunError(f"`ctx.message` must have the role `{role}` in `{self._hook_type}`")
        answered = [result.id for result in self._message.tool_results]
        if role == "user" and [result.id for result in new.tool_results] != answered:
            raise RunError("`ctx.message` must carry a result for each tool call, in order")
        self._message = new


class TurnHooks:
    """The turn hooks of an agent.

    Args:
        hooks: Hooks by point; those of one point run one after another, in order.
    """

    __slots__ = ("_hooks",)

    def __init__(self, hooks: Mapping[HookPoint, Sequence[Hook]]) -> None:
        self._hooks: dict[HookPoint, tuple[Hook, ...]] = {
            point: tuple(functions) for point, functions in hooks.items() if functions
        }

    def has(self, point: HookPoint) -> bool:
        """Return whether there is a hook at a point."""
        return point in self._hooks

    async def run(
        self,
        point: HookPoint,
        message: Message,
        *,
        message_history: Sequence[Message],
        iteration: int,
        agent_name: str,
        usage: Usage,
    ) -> Message:
        """Run the hooks of a point.

        Args:
            point: The hook point.
            message: The message it is about.
            message_history: The conversation before that message.
            iteration: The model request of the turn, from 1.
            agent_name: The agent whose turn it is.
            usage: What the turn used so far.

        Returns:
            The message, or what a hook put in its place.

        Raises:
            RunError: A hook failed; the message names it and its line.
        """
        for hook in self._hooks.get(point, ()):
            context = TurnHookContext(
                hook_type=point,
                message=message,
                message_history=message_history,
                iteration=iteration,
                agent_name=agent_name,
                usage=usage,
            )
            try:
                await hook.function(context)
            except Exception as error:
                log.exception("hook `%s` failed in `%s`", hook.name, point)
                raise _failure(hook, point, error) from error
            message = context.message
        return message


def _failure(hook: Hook, point: HookPoint, error: Exception) -> RunError:
    code = getattr(hook.function, "__code__", None)
    file = getattr(code, "co_filename", None)
    lines = [
        line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file
    ]
    place = f" at line {lines[-1]}" if lines else ""
    what = error.message if isinstance(error, RunError) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, RunError) else None
    if isinstance(error, AttributeError) and isinstance(error.obj, TurnHookContext):
        names = [f"`{name}`" for name in dir(TurnHookContext) if not name.startswith("_")]
        hint = f"the context of a turn hook has {', '.join(names)}"
    return RunError(f"hook `{hook.name}` failed in `{point}`{place}: {what}", hint=hint)
