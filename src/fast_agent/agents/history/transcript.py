"""Conversation: what one agent instance remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fast_agent.messages.history import CallIds, History, append_to_view, shortened, view_of
from fast_agent.messages.message import Message, TextContent
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.messages.history import ResultLimits
    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.models.model import ContextUse
    from fast_agent.text.json_value import JsonObject

_OLD_RESULT: Final = 512  # bytes left of a result that came before the last ones
_LAST_RESULT: Final = 4096

_OTHER_BLOCK: Final = 1 << 20  # more than any is counted as

_SUMMARY: Final = "[the conversation so far, summarized]\n\n"


@frozen
class Compaction:
    """A summary that replaces the first messages of a view.

    Args:
        start: The index in the history of the first message that is left as it is.
        summary: What was said before it, after the templates; empty where only the provider's
            form says it.
        native: The provider's compact form of it, as `Message.native` of an answer, with the name
            of the only `model` that is given it; None where the summary is all there is.
    """

    start: int
    summary: str
    native: JsonObject | None = None


class Transcript:
    """A history, the view of it a model is given, and the call ids in use.

    Appending takes constant time, and so does starting from another conversation, unless that has
    longer tool results than this one gives a model. While nothing has to be put right, the view is
    the history itself, so that messages are held once.

    Args:
        messages: What it starts with; of another conversation, everything in it now.
        limits: How much of a tool result a model is given; None takes over those of another
            conversation, or gives all.

    Attributes:
        history: Every message, as it came.
        last: The last of them, or None.
        view: What a model is given.
        call_ids: Ids of tool calls in use, in this conversation and its drafts.
        limits: How much of a tool result a model is given; None is all.
        has_cut: Whether the view has only a part of some result.
        compaction: The summary its view starts with, or None.
        use: How full the context window was at the last answer; None where that is not known, as
            after something was left out of the view.
    """

    __slots__ = ("call_ids", "compaction", "has_cut", "history", "last", "limits", "use", "view")

    def __init__(
        self, messages: Iterable[Message] = (), limits: ResultLimits | None = None
    ) -> None:
        self.has_cut = False
        self.limits = limits
        self.compaction: Compaction | None = None
        self.use: ContextUse | None = None
        if isinstance(messages, Transcript):
            self.compaction = messages.compaction
            self.history = messages.history
            self.call_ids = CallIds(messages.call_ids)
            self.last = messages.last
            if limits is None or messages.limits == limits or not messages.differs_under(limits):
                self.view = messages.view
                self.limits = limits or messages.limits
                self.has_cut = messages.has_cut
            else:
                self.view = self._whole_view()
            return
        self.history = messages if isinstance(messages, History) else History(messages)
        self.view = self.history
        self.call_ids = CallIds()
        self.last = _last_of(self.history)
        if self.last is not None:
            if limits is not None and self.differs_under(limits):
                self.view = self._whole_view()
            elif not _is_acceptable(self.history):
                self.view = view_of(self.history)
            self.call_ids.note(self.history)

    @classmethod
    def of_valid(cls, messages: History, call_ids: CallIds) -> Transcript:
        """Make a conversation of messages every provider accepts, in constant time.

        Args:
            messages: The messages; they are not checked.
            call_ids: The ids of their calls; not copied.
        """
        made = cls.__new__(cls)
        made.history = made.view = messages
        made.call_ids = CallIds(call_ids)
        made.last = _last_of(messages)
        made.limits = None
        made.has_cut = False
        made.compaction = None
        made.use = None
        return made

    def __iter__(self) -> Iterator[Message]:
        return iter(self.history)

    def __len__(self) -> int:
        return len(self.history)

    def differs_under(self, limits: ResultLimits) -> bool:
        """Whether the view may be another one under other limits than these."""
        return self.has_cut or self.history.longest_result > limits.least

    def draft(self) -> Transcript:
        """Return a copy in constant time, to be dropped or to take this one's place."""
        draft = Transcript.__new__(Transcript)
        draft.history = self.history
        draft.view = self.view
        draft.call_ids = self.call_ids
        draft.last = self.last
        draft.limits = self.limits
        draft.has_cut = self.has_cut
        draft.compaction = self.compaction
        draft.use = self.use
        return draft

    def append(self, message: Message) -> None:
        """Add `message`."""
        history = self.history.append(message)
        limits, shown = self.limits, message
        if limits is not None and message.tool_results and history.longest_result > limits.least:
            shown = self._shown(message, self.last)
        if self.view is self.history and shown is message and _fits(self.last, message):
            self.view = history
        else:
            self.view = self._extended(self.view, shown)
        self.history = history
        self.last = message

    def append_block(self, messages: Iterable[Message]) -> None:
        """Add messages of another conversation, with call ids not in use in this one."""
        for message in self.call_ids.own_block(messages):
            self.append(message)

    @property
    def templates(self) -> int:
        """How many templates it starts with; no summary replaces them."""
        return next(
            (at for at, one in enumerate(self.history) if not one.is_template), len(self.history)
        )

    @property
    def most_since_answer(self) -> int:
        """An upper bound of the characters of what a model is given after its last answer."""
        last = self.view[-1]  # the only such message: the roles of a view take turns
        size = len(last.tool_results) * self.history.longest_result
        for block in last.content:
            size += len(block.text) if isinstance(block, TextContent) else _OTHER_BLOCK
        return size

    def compact(self, compaction: Compaction | None) -> None:
        """Start the view with a summary, or with None without one; the history keeps everything."""
        self.compaction = compaction
        self.view = self._whole_view()
        self.use = None
        # The summary may name results, and those before it are not in the view any more.
        self.has_cut = True

    def view_before(self, end: int) -> History:
        """Return what a model is given of the messages before one, whole results included.

        Args:
            end: The index of that message in the history.
        """
        part = Transcript(limits=self.limits)
        part.history = self.history.prefix(end)
        part.compaction = self.compaction
        return part._whole_view()

    def shorten(self) -> bool:
        """Leave more of the tool results out of the view, as when a model has no room for it.

        Those before the last message with results go first, then most of all of them.

        Returns:
            Whether there was something to leave out; the history keeps everything.
        """
        places = [at for at, message in enumerate(self.view) if message.tool_results]
        for most, some in ((_OLD_RESULT, places[:-1]), (_LAST_RESULT, places[-1:])):
            shown = list(self.view)
            for at in some:
                shown[at] = self._cut_to(most, shown[at])
            if shown != list(self.view):
                self.view = History(shown)
                self.use = None
                self.has_cut = True
                return True
        return False

    def trim(self) -> None:
        """Leave only the last tool calls of the turn that ended in the view; the history keeps all.

        The turn began at the last message of the user that answers no call.
        """
        end = len(self.view)
        places = range(end - 1, -1, -1)
        begin = next((at for at in places if _begins_turn(self.view[at])), None)
        if begin is None:
            return
        calling = [at for at in range(begin + 1, end) if self.view[at].tool_calls]
        if len(calling) < 2:
            return
        view = self.view.prefix(begin + 1)
        for message in self.view.iterate(calling[-1]):
            view = view.append(message)
        self.view = view
        self.use = None
        self.has_cut = True

    def result(self, call_id: str) -> ToolResult | None:
        """Return the whole result of a call, or None where there is none of that id."""
        for message in reversed(self.history):
            for result in message.tool_results:
                if result.id == call_id:
                    return result
        return None

    def with_own_ids(self, message: Message) -> Message:
        """Return `message` with call ids this conversation has not used, and record them."""
        return self.call_ids.own(message)

    def free_ids(self, message: Message) -> None:
        """Release the call ids of a message that will not be added."""
        self.call_ids.free(message)

    def _whole_view(self) -> History:
        """Rebuild the view of the whole history."""
        view, last, start = History(), None, 0
        if self.compaction is not None:
            view = view_of(self.history.prefix(self.templates))
            for message in _opening(self.compaction):
                view = append_to_view(view, message)
            start = self.compaction.start
        for message in self.history.iterate(start):
            view = self._extended(view, self._shown(message, last))
            last = message
        return view

    def _extended(self, view: History, message: Message) -> History:
        """Return a view with a message after it, as every provider accepts it."""
        made = None if self.compaction is None else self.compaction.native
        if made is not None and message.role == "assistant" and view and view[-1].native is made:
            # Two answers in a row are joined, which would lose the provider's form of the first.
            view = append_to_view(view, _CONTINUED)
        return append_to_view(view, message)

    def _cut_to(self, most: int, message: Message) -> Message:
        """Return a message of the view with its results cut to `most` bytes."""
        whole = {one.id: self.result(one.id) or one for one in message.tool_results}
        results = tuple([shortened(whole[one.id], most) for one in message.tool_results])
        return replace(message, tool_results=results, native=None)

    def _shown(self, message: Message, last: Message | None) -> Message:
        """Return a message as a model is given it, behind another one."""
        if self.limits is None:
            return message
        calls: tuple[ToolCall, ...] = () if last is None else last.tool_calls
        shown = self.limits.apply(message, calls)
        self.has_cut = self.has_cut or shown is not message
        return shown


def _opening(compaction: Compaction) -> tuple[Message, ...]:
    """Return what stands in a view for the messages that a compaction replaces."""
    if compaction.native is None:
        return (Message.user(_SUMMARY + compaction.summary),)
    content = (TextContent(compaction.summary),) if compaction.summary else ()
    return (Message("assistant", content, native=compaction.native, stop_reason="endTurn"),)


_CONTINUED: Final = Message.user("[the conversation continues]")


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not message.tool_results


def _last_of(history: History) -> Message | None:
    return history[-1] if history else None


def _is_acceptable(history: History) -> bool:
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
