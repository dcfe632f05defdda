"""Call ids: those in use in a conversation, and how calls that come to it get free ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.messages.message import Message, ToolCall


class CallIds:
    """The ids of tool calls in use in a conversation.

    Args:
        below: Ids in use where this conversation branched off; they are not copied.
    """

    __slots__ = ("_below", "_own")

    def __init__(self, below: CallIds | None = None) -> None:
        self._below = below
        self._own: set[str] = set()

    def __contains__(self, call_id: str) -> bool:
        if call_id in self._own:
            return True
        return self._below is not None and call_id in self._below

    def __len__(self) -> int:
        return len(self._own) + (0 if self._below is None else len(self._below))

    def note(self, messages: Iterable[Message]) -> None:
        """Record the current calls of `messages`."""
        self._own.update(call.id for one in messages for call in one.tool_calls)

    def own(self, message: Message) -> Message:
        """Return `message` with call ids not in use, and record them.

        Some models number their calls from one in every answer, or leave the id empty; a result
        could then not be distinguished from another call's.
        """
        if not message.tool_calls:
            return message
        calls: list[ToolCall] = []
        changed = False
        for call in message.tool_calls:
            call_id = call.id
            if not call_id or call_id in self:
                call_id = self._free_id(call_id or "call")
                changed = True
            self._own.add(call_id)
            calls.append(call if call_id == call.id else replace(call, id=call_id))
        return replace(message, tool_calls=tuple(calls), native=None) if changed else message

    def own_block(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield the messages of another conversation, in order, with call ids not in use here.

        Args:
            messages: A stretch of a conversation in which results follow their calls.

        Yields:
            Each message; a result carries the id its call has now.
        """
        renamed: dict[str, str] = {}
        for message in messages:
            if message.tool_results and renamed:
                results = tuple(
                    [
                        replace(result, id=renamed.get(result.id, result.id))
                        for result in message.tool_results
                    ]
                )
                yield replace(message, tool_results=results, native=None)
                continue
            owned = self.own(message)
            if message.tool_calls:
                pairs = zip(message.tool_calls, owned.tool_calls, strict=True)
                renamed = {call.id: own.id for call, own in pairs if call.id != own.id}
            yield owned

    def free(self, message: Message) -> None:
        """Release the call ids of a message that will not be added."""
        self._own.difference_update([call.id for call in message.tool_calls])

    def _free_id(self, wanted: str) -> str:
        # Counting from the number of ids in use finds a free one at once in a long conversation.
        number = len(self) + 1
        while f"{wanted}_{number}" in self:
            number += 1
        return f"{wanted}_{number}"
