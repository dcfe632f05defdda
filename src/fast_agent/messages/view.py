"""View: a history as every provider accepts it.

Files, callers and merges can bring histories that a provider would refuse: two user messages in a
row, a tool call without a result, a result without a call. The history keeps them unchanged;
the view of it, which is what a model receives, corrects them as messages are appended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.messages.content import TextContent
from fast_agent.messages.history import History
from fast_agent.messages.message import Message, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.message import ToolCall

LOST = "no result of this call was recorded"
OPENING = Message.user("[the conversation begins with the assistant]")


def view_of(messages: Iterable[Message]) -> History:
    """Return `messages` as every provider accepts them."""
    view = History()
    for message in messages:
        view = append_to_view(view, message)
    return view


def append_to_view(view: History, message: Message) -> History:
    """Return `view` with `message` after it; the cost does not depend on the length."""
    if message.role == "assistant":
        return _append_assistant(view, _asking(message))
    last = view[-1] if view else None
    if last is None:
        return view.append(_answering((), message))
    if last.role == "assistant":
        return view.append(_answering(last.tool_calls, message))
    return _join(view, last, _answering((), message))


def error_result(call_id: str, text: str) -> ToolResult:
    """Make the error result of a call from one line of text."""
    return ToolResult(call_id, (TextContent(text),), is_error=True)


def _append_assistant(view: History, message: Message) -> History:
    last = view[-1] if view else None
    if last is None:
        return view.append(OPENING).append(message)
    if last.role == "user":
        return view.append(message)
    if last.tool_calls:
        return view.append(_answering(last.tool_calls, Message("user"))).append(message)
    return _join(view, last, message)


def _asking(message: Message) -> Message:
    """Return an assistant message without results and without two calls of one id."""
    calls = {call.id: call for call in reversed(message.tool_calls)}
    if len(calls) == len(message.tool_calls) and not message.tool_results:
        return message
    unique = tuple(reversed(calls.values()))
    return replace(message, tool_calls=unique, tool_results=(), native=None)


def _answering(calls: tuple[ToolCall, ...], message: Message) -> Message:
    """Return a user message without calls, and with exactly one result for each of `calls`."""
    results = message.tool_results
    same = [result.id for result in results] == [call.id for call in calls]
    if same and not message.tool_calls:
        return message
    by_id = {result.id: result for result in results}
    answers = tuple([by_id.get(call.id) or error_result(call.id, LOST) for call in calls])
    return replace(message, tool_calls=(), tool_results=answers, native=None)


def _join(view: History, last: Message, message: Message) -> History:
    joined = replace(
        last,
        content=last.content + message.content,
        tool_calls=last.tool_calls + message.tool_calls,
        channels={**last.channels, **message.channels},
        native=None,
        stop_reason=message.stop_reason,
        is_template=last.is_template and message.is_template,
    )
    return view.prefix(len(view) - 1).append(joined)
