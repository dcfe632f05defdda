"""Replay: what was said in a session before, told to a client that loads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.acp.prompt_content import block_to_wire, tool_content
from fast_agent.acp.tool_view import locations, tool_kind, tool_title
from fast_agent.acp.updates import call_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.messages.message import Message
    from fast_agent.sessions.state import SessionState
    from fast_agent.text.json_value import JsonObject

_THINKING = "reasoning"


def replayed(state: SessionState, cwd: Path) -> Iterator[JsonObject]:
    """Give the updates of every turn a person began, in order.

    Args:
        state: The session.
        cwd: Where relative paths of calls start.

    Raises:
        SessionError: A message is damaged.
    """
    for turn in state.turns:
        messages = turn.closed() if turn.ended is None else turn.messages()
        for message in messages:
            yield from _updates(turn.turn_id, message, cwd)


def _updates(turn_id: str, message: Message, cwd: Path) -> Iterator[JsonObject]:
    user = message.role == "user"
    for block in message.channels.get(_THINKING, ()):
        wire = block_to_wire(block)
        if wire is not None and not user:
            yield {"sessionUpdate": "agent_thought_chunk", "content": wire}
    kind = "user_message_chunk" if user else "agent_message_chunk"
    for block in message.content:
        wire = block_to_wire(block)
        if wire is not None:
            yield {"sessionUpdate": kind, "content": wire}
    for call in message.tool_calls:
        yield {
            "sessionUpdate": "tool_call",
            "toolCallId": call_id(turn_id, call.id),
            "title": tool_title(call.name, call.arguments),
            "kind": tool_kind(call.name, "runtime"),
            "status": "pending",
            "rawInput": dict(call.arguments),
            "locations": locations(call.arguments, cwd),
        }
    for result in message.tool_results:
        yield {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call_id(turn_id, result.id),
            "status": "failed" if result.is_error else "completed",
            "content": tool_content(result.content),
        }
