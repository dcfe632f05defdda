"""Conversation: what one agent instance remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.messages.history import History
from fast_agent.messages.view import append_to_view, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.message import Message, ToolCall


class Conversation:
    """A history, the view of it a model is given, and the call ids in use.

    Appending takes constant time. While nothing has to be put right, the view is the history
    itself, so that messages are held once.

    Args:
        messages: What it starts with.

    Attributes:
        history: Every message, as it came.
        view: What a model is given.
        call_ids: Ids of tool calls in use, in this conversation and its drafts.
    """

    __slots__ = ("call_ids", "history", "view")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.history = History(messages)
        self.view = self.history
        self.call_ids: set[str] = set()
        if len(self.history):
            view = view_of(self.history)
            if view != self.history:
                self.view = view
            self.call_ids.update(call.id for one in self.history for call in one.tool_calls)

    def draft(self) -> Conversation:
        """Return a copy in constant time, to be dropped or to take this one's place."""
        draft = Conversation()
        draft.history = self.history
        draft.view = self.view
        draft.call_ids = self.call_ids
        return draft

    def append(self, message: Message) -> None:
        """Add `message`."""
        shared = self.view is self.history
        history = self.history.append(message)
        if shared and _fits(self.history, message):
            self.view = history
        else:
            self.view = append_to_view(self.view, message)
        self.history = history

    def with_own_ids(self, message: Message) -> Message:
        """Return `message` with call ids this conversation has not used, and take note of them.

        Some models number their calls from one in every answer, or leave the id empty; a result
        could then not be told from another call's.
        """
        if not message.tool_calls:
            return message
        taken = self.call_ids
        calls: list[ToolCall] = []
        for call in message.tool_calls:
            call_id = call.id
            if not call_id or call_id in taken:
                call_id = self._free_id(call_id or "call")
            taken.add(call_id)
            calls.append(call if call_id == call.id else replace(call, id=call_id))
        owned = tuple(calls)
        if all(own is call for own, call in zip(owned, message.tool_calls, strict=True)):
            return message
        return replace(message, tool_calls=owned, native=None)

    def free_ids(self, message: Message) -> None:
        """Let the call ids of a message that is not to be added be used again."""
        self.call_ids.difference_update([call.id for call in message.tool_calls])

    def _free_id(self, wanted: str) -> str:
        # Counting from the number of ids in use finds a free one at once in a long conversation.
        number = len(self.call_ids) + 1
        while f"{wanted}_{number}" in self.call_ids:
            number += 1
        return f"{wanted}_{number}"


def _fits(history: History, message: Message) -> bool:
    """Whether `message` may follow `history` as it is; asked at every append, so kept quick."""
    last = history[-1] if history else None
    if message.role == "assistant":
        if last is None or last.role == "assistant" or message.tool_results:
            return False
        calls = message.tool_calls
        return len(calls) < 2 or len({call.id for call in calls}) == len(calls)
    if last is None:
        return not message.tool_results and not message.tool_calls
    if last.role == "user" or message.tool_calls:
        return False
    return [result.id for result in message.tool_results] == [call.id for call in last.tool_calls]
