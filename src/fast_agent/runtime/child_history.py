"""Child history: what a child agent starts with, and where its new messages go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fast_agent.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import Message, ToolCall
    from fast_agent.runtime.tool_calls import TurnCallContext


class HistoryRouting(Protocol):
    """How the histories of a parent and one of its children meet."""

    async def base_for(self, call: ToolCall, context: TurnCallContext) -> Iterable[Message]:
        """Give the messages the child starts with.

        Args:
            call: The call the child is to answer.
            context: The parent's turn; `history` is its conversation before the call.
        """
        ...

    async def merge(
        self, call: ToolCall, context: TurnCallContext, messages: Sequence[Message]
    ) -> None:
        """Put the child's new messages where they go.

        Args:
            call: The call the child answered.
            context: The parent's turn.
            messages: Every message of the child's turn, in order.
        """
        ...


class NoRouting:
    """`none` and `none`: the child starts with nothing and leaves nothing."""

    async def base_for(self, call: ToolCall, context: TurnCallContext) -> Iterable[Message]:
        """Give no messages."""
        del call, context
        return ()

    async def merge(
        self, call: ToolCall, context: TurnCallContext, messages: Sequence[Message]
    ) -> None:
        """Drop the messages."""
        del call, context, messages


def routing_of(parent: AgentConfig, child: str) -> HistoryRouting:
    """Choose the routing a parent's card asks for.

    Args:
        parent: The parent.
        child: The child's name; `child_history` may hold settings of its own for it.

    Raises:
        RunError: This version does not have it.
    """
    own = (parent.child_history or {}).get(child)
    source = (own and own.source) or parent.history_source
    target = (own and own.merge_target) or parent.history_merge_target
    if source == target == "none":
        return NoRouting()
    raise RunError(
        f"agent `{parent.name}` routes the history of `{child}` from `{source}` to `{target}`,"
        " which this version does not do yet",
        hint="set `history_source` and `history_merge_target` to `none`, or leave them out",
    )
