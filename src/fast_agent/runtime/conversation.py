"""Conversation: what one agent instance remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.messages.call_ids import CallIds
from fast_agent.messages.history import History
from fast_agent.messages.view import append_to_view, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.messages.message import Message


class Conversation:
    """A history, the view of it a model is given, and the call ids in use.

    Appending takes constant time, and so does starting from another conversation. While nothing has
    to be put right, the view is the history itself, so that messages are held once.

    Args:
        messages: What it starts with; of another conversation, everything in it now.

    Attributes:
        history: Every message, as it came.
        last: The last of them, or None.
        view: What a model is given.
        call_ids: Ids of tool calls in use, in this conversation and its drafts.
    """

    __slots__ = ("call_ids", "history", "last", "view")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        if isinstance(messages, Conversation):
            self.history = messages.history
            self.view = messages.view
            self.call_ids = CallIds(messages.call_ids)
            self.last = messages.last
            return
        self.history = messages if isinstance(messages, History) else History(messages)
        self.view = self.history
        self.call_ids = CallIds()
        self.last = _last_of(self.history)
        if self.last is not None:
            if not _fit_together(self.history):
                self.view = view_of(self.history)
            self.call_ids.note(self.history)

    @classmethod
    def of_valid(cls, messages: History, call_ids: CallIds) -> Conversation:
        """Make a conversation of messages every provider accepts, in constant time.

        Args:
            messages: The messages; they are not looked at.
            call_ids: The ids of their calls; not copied.
        """
        made = cls.__new__(cls)
        made.history = made.view = messages
        made.call_ids = CallIds(call_ids)
        made.last = _last_of(messages)
        return made

    def __iter__(self) -> Iterator[Message]:
        return iter(self.history)

    def __len__(self) -> int:
        return len(self.history)

    def draft(self) -> Conversation:
        """Return a copy in constant time, to be dropped or to take this one's place."""
        draft = Conversation.__new__(Conversation)
        draft.history = self.history
        draft.view = self.view
        draft.call_ids = self.call_ids
        draft.last = self.last
        return draft

    def append(self, message: Message) -> None:
        """Add `message`."""
        history = self.history.append(message)
        if self.view is self.history and _fits(self.last, message):
            self.view = history
        else:
            self.view = append_to_view(self.view, message)
        self.history = history
        self.last = message

    def append_block(self, messages: Iterable[Message]) -> None:
        """Add messages of another conversation, with call ids not in use in this one."""
        for message in self.call_ids.own_block(messages):
            self.append(message)

    def with_own_ids(self, message: Message) -> Message:
        """Return `message` with call ids this conversation has not used, and take note of them."""
        return self.call_ids.own(message)

    def free_ids(self, message: Message) -> None:
        """Let the call ids of a message that is not to be added be used again."""
        self.call_ids.free(message)


def _last_of(history: History) -> Message | None:
    return history[-1] if history else None


def _fit_together(history: History) -> bool:
    """Whether providers accept a history as it is, but for calls at its end."""
    last: Message | None = None
    calling: Message | None = None
    role = "assistant"
    for message in history:
        # Where nothing is called, it is enough that roles take turns.
        if calling is not None or message.tool_calls or message.tool_results:
            if not _fits(last, message):
                return False
            calling = message if message.tool_calls else None
        elif message.role == role:
            return False
        role, last = message.role, message
    return True


def _fits(last: Message | None, message: Message) -> bool:
    """Whether `message` may follow `last` as it is; asked at every append, so kept quick."""
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
