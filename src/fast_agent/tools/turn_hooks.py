"""Hooks of a turn: functions called before and after model requests and tool calls, and at its end.

A hook is `async (ctx)`. `ctx.message` is what the hook point is about:

| point | `ctx.message` | may be replaced |
|---|---|---|
| `before_llm_call` | the user message, or the tool results, the model is about to answer | yes |
| `after_llm_call` | the model's answer, its tool calls included | yes |
| `before_tool_call` | the answer whose tool calls are about to run, all of them together | no |
| `after_tool_call` | the message with their results | no |
| `after_turn_complete` | the final answer | no |

To change one tool call, use a hook of the list form.
"""

from __future__ import annotations

from logging import getLogger
from traceback import walk_tb
from typing import TYPE_CHECKING

from fast_agent.errors import RunError
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cards.agent_config import HookPoint
    from fast_agent.models.usage import Usage
    from fast_agent.tools.hooks import Hook

log = getLogger(__name__)

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
        """Tell whether there is a hook at a point."""
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
    return RunError(f"hook `{hook.name}` failed in `{point}`{place}: {what}", hint=hint)
