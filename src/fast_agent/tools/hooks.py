"""Hooks around tool calls: functions that see, change or replace a call and its result.

A hook is `async (ctx, args, call_next)` and returns the result. The first hook of a card's list is
the outermost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import iscoroutinefunction, signature
from logging import getLogger
from typing import TYPE_CHECKING, TypeAlias, cast

from fast_agent.errors import ToolError
from fast_agent.tools.result import error_result, result_of, said
from fast_agent.tools.wrapped_tool import WrappedTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.tool import Tool, ToolContext, ToolSource

log = getLogger(__name__)

CallNext: TypeAlias = "Callable[..., Awaitable[ToolResult]]"
"""`await call_next(args)` goes on inwards; without `args`, with the arguments as they are."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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

        async def call_next(args: Mapping[str, object] | None = None) -> ToolResult:
            return await self.go(depth + 1, arguments if args is None else dict(args))

        try:
            value = await hook.function(self._hook_context, arguments, call_next)
            if value is None:
                hint = "return what `call_next` gave, or a result"
                raise ToolError("it returned nothing", hint=hint)
            return result_of(self._call.id, value)
        except Exception as error:  # the boundary of a hook
            if error is self._raised:
                # The tool's own failure on its way out, not the hook's.
                raise
            log.exception("hook `%s` failed", hook.name)
            return error_result(self._call.id, f"hook `{hook.name}` failed: {said(error)}")

    async def _call_tool(self, arguments: JsonObject) -> ToolResult:
        try:
            return await self._tool.call(replace(self._call, arguments=arguments), self._context)
        except Exception as error:
            self._raised = error
            raise


def wrong_hook(function: object, parameters: tuple[str, ...]) -> str | None:
    """Say what is wrong with a hook function's signature.

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
