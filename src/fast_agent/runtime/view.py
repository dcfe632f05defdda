"""View: a history as a provider accepts it.

Files, callers and merges can bring histories that a provider would refuse: two user messages in a
row, a tool call nobody answered, a result nobody asked for. The history keeps them as they are;
the view next to it, which is what a model is given, has them put right as messages are appended.
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


def view_of(messages: Iterable[Message]) -> History:
    """Return `messages` as a provider accepts them."""
    view = History()
    for message in messages:
        view = append_to_view(view, message)
    return view


def append_to_view(view: History, message: Message) -> History:
    """Return `view` with `message` after it; constant time when nothing has to be put right."""
    if not len(view):
        return view.append(_without_results(message))
    last = view[-1]
    if last.role == "assistant":
        if message.role == "user":
            return view.append(_answering(last.tool_calls, message))
        if last.tool_calls:
            answered = view.append(_answering(last.tool_calls, Message("user")))
            return answered.append(message)
    elif message.role == "assistant":
        return view.append(message)
    else:
        message = _without_results(message)
    return view.prefix(len(view) - 1).append(_joined(last, message))


def error_result(call_id: str, text: str) -> ToolResult:
    """Make the error result of a call from one line of text."""
    return ToolResult(call_id, (TextContent(text),), is_error=True)


def _without_results(message: Message) -> Message:
    return replace(message, tool_results=(), native=None) if message.tool_results else message


def _answering(calls: tuple[ToolCall, ...], message: Message) -> Message:
    """Give `message` exactly one result for each call, in call order."""
    results = message.tool_results
    if [result.id for result in results] == [call.id for call in calls]:
        return message
    by_id = {result.id: result for result in results}
    answers = tuple(by_id.get(call.id) or error_result(call.id, LOST) for call in calls)
    return replace(message, tool_results=answers, native=None)


def _joined(first: Message, second: Message) -> Message:
    return replace(
        first,
        content=first.content + second.content,
        tool_calls=first.tool_calls + second.tool_calls,
        channels={**first.channels, **second.channels},
        native=None,
        stop_reason=second.stop_reason,
        is_template=first.is_template and second.is_template,
    )
