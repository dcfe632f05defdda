"""History: an immutable sequence of messages whose versions share what they have in common.

What makes one valid for a model is checked and repaired here too: every call has its result.

A history keeps every result whole, and so do the session's log and files. Only the view of it,
which is what a model is given, has long ones shortened to their head and tail, with an address by
which the tool `read_result` reads the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, overload

from fast_agent.messages.message import (
    NOTHING,
    EmbeddedResource,
    EmptyMapping,
    Message,
    TextContent,
    ToolResult,
)
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.text.json_value import JsonObject

RESULTS: Final = "session://results/"
"""Prefix of the addresses of whole results; the id of the call follows."""

_NO_TOOLS: Final[Mapping[str, int]] = EmptyMapping()
_TAIL_SHARE: Final = 4  # the start of a result is more informative than its end
_BITS = 7
_CHUNK = 1 << _BITS
_MASK = _CHUNK - 1


class _Log:
    """The messages of one line, in chunks; all chunks but the last are full and never change."""

    __slots__ = ("chunks", "length", "longest")

    def __init__(self, chunks: list[list[Message]], length: int, longest: int) -> None:
        self.chunks = chunks
        self.length = length
        self.longest = longest

    def add(self, message: Message) -> None:
        if message.tool_results:
            self.longest = max(self.longest, *map(size_of, message.tool_results))
        chunks = self.chunks
        if self.length & _MASK:
            chunks[-1].append(message)
        else:
            chunks.append([message])
        self.length += 1

    def fork(self, length: int) -> _Log:
        """Make a log of the first `length` messages that shares the full chunks of this one."""
        full, rest = length >> _BITS, length & _MASK
        chunks = self.chunks[:full]
        if rest:
            chunks.append(self.chunks[full][:rest])
        return _Log(chunks, length, self.longest)


class History(Sequence[Message]):
    """An append-only sequence: `append` returns a new history and leaves this one as it was.

    Versions of one line share a single log. A version that is not the newest of its line forks the
    log when it is appended to, so that neither line ever sees what the other adds; a fork copies
    one chunk and the list of chunks, not the messages. Appending costs the same at any length.

    Meant for one event loop: an append never awaits, so tasks may append to versions of one line in
    any order. It is not for use from several threads at once.
    """

    __slots__ = ("_length", "_log")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        there = list(messages)
        chunks = [there[at : at + _CHUNK] for at in range(0, len(there), _CHUNK)]
        longest = max(
            (size_of(one) for message in there for one in message.tool_results), default=0
        )
        self._log = _Log(chunks, len(there), longest)
        self._length = len(there)

    @classmethod
    def _view(cls, log: _Log, length: int) -> History:
        view = cls.__new__(cls)
        view._log = log  # noqa: SLF001
        view._length = length  # noqa: SLF001
        return view

    @property
    def longest_result(self) -> int:
        """The size of the longest tool result in it or in a later version, as `size_of` counts."""
        return self._log.longest

    def append(self, message: Message) -> History:
        """Return this history with `message` after it."""
        log = self._own_log()
        log.add(message)
        return self._view(log, log.length)

    def extend(self, messages: Iterable[Message]) -> History:
        """Return this history with `messages` after it, in order."""
        added = list(messages)  # read in full first: it may be a view of this very log
        if not added:
            return self
        log = self._own_log()
        for message in added:
            log.add(message)
        return self._view(log, log.length)

    def prefix(self, length: int) -> History:
        """Return the first `length` messages, in constant time; all of them when it is longer."""
        return self._view(self._log, max(0, min(length, self._length)))

    def iterate(self, start: int = 0) -> Iterator[Message]:
        """Iterate from index `start` on, without copying and without walking what is before it.

        Args:
            start: The first index, from 0.

        Returns:
            An iterator that ends where this history ends, even if more is appended while it runs.
        """
        start = max(0, start)
        if start >= self._length:
            return iter(())
        chunks = self._log.chunks
        first = start >> _BITS
        last = (self._length - 1) >> _BITS
        offset = start & _MASK
        count = self._length - start
        if first == last:
            return islice(chunks[first], offset, offset + count)
        rest = chain.from_iterable(chunks[first + 1 : last + 1])
        return islice(chain(islice(chunks[first], offset, None), rest), count)

    def _own_log(self) -> _Log:
        log = self._log
        return log if log.length == self._length else log.fork(self._length)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return self.iterate()

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step == 1:
                return tuple(islice(self.iterate(start), max(0, stop - start)))
            return tuple(self[position] for position in range(start, stop, step))
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError("history index out of range")
        return self._log.chunks[position >> _BITS][position & _MASK]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        if self._length != other._length:
            return False
        return self._log is other._log or list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"History({list(self)!r})"


@frozen
class HistoryDocument:
    """A conversation as a file holds it.

    Args:
        system: The system prompt in the file, or None.
        messages: The messages, in order.
        extra: Unknown fields of the document, kept.
    """

    system: str | None = None
    messages: tuple[Message, ...] = ()
    extra: JsonObject = NOTHING


LOST = "no result of this call was recorded"
OPENING = Message.user("[the conversation begins with the assistant]")


@frozen
class OrderProblem:
    """A message that breaks the order; `index` counts from 0."""

    index: int
    reason: str


def check_validity(messages: Iterable[Message]) -> list[str]:
    """Return why providers would refuse a conversation, one line per reason.

    Args:
        messages: The conversation, in order.

    Returns:
        One sentence a problem, with the index of the message; empty for a valid conversation.
    """
    return [f"message {problem.index} {problem.reason}" for problem in order_problems(messages)]


def order_problems(messages: Iterable[Message]) -> list[OrderProblem]:
    """Find what breaks the order every provider needs.

    The user speaks first. Two assistant messages never follow each other; user messages may, since
    a provider reads them as one turn. Every tool call is answered by exactly one result in the
    message right after it, every result answers a call, and only the assistant calls.

    Args:
        messages: The conversation, in order.

    Returns:
        The problems, in order.
    """
    problems: list[OrderProblem] = []
    before: Message | None = None
    index = -1
    for index, message in enumerate(messages):
        reasons = [*_role_reasons(before, message), *_call_reasons(message)]
        if before is not None:
            reasons += _missing(before, message)
        reasons += _stray(before, message)
        problems += [OrderProblem(index, reason) for reason in reasons]
        before = message
    if before is not None:
        problems += [
            OrderProblem(index, f"has a tool call without a result: `{call.id}`")
            for call in before.tool_calls
        ]
    return problems


def close_open_calls(history: History, text: str) -> History:
    """Answer the calls at the end of a history that have no result, as after a cancellation.

    Args:
        history: A history whose open calls, if any, are those of its last assistant message.
        text: What the error results say.

    Returns:
        The history with one error result for each open call, in call order, in addition to existing
        are there; the same history where no call is open. The cost does not depend on its length.
    """
    if not history:
        return history
    last = history[-1]
    if last.role == "assistant":
        if not last.tool_calls:
            return history
        return history.append(Message("user", tool_results=_answers(last, {}, text)))
    asking = history[-2] if len(history) > 1 else None
    if asking is None or not asking.tool_calls:
        return history
    there = {result.id: result for result in last.tool_results}
    if all(call.id in there for call in asking.tool_calls):
        return history
    answered = replace(last, tool_results=_answers(asking, there, text))
    return history.prefix(len(history) - 1).append(answered)


def _answers(asking: Message, there: dict[str, ToolResult], text: str) -> tuple[ToolResult, ...]:
    return tuple(
        [
            there.get(call.id) or ToolResult(call.id, (TextContent(text),), is_error=True)
            for call in asking.tool_calls
        ]
    )


def _role_reasons(before: Message | None, message: Message) -> list[str]:
    if message.role == "user":
        return ["is from the user but calls tools"] if message.tool_calls else []
    reasons = ["is from the assistant but holds tool results"] if message.tool_results else []
    if before is None:
        reasons.append("is from the assistant, but the user must speak first")
    elif before.role == "assistant":
        reasons.append("is from the assistant, as is the one before it")
    return reasons


def _call_reasons(message: Message) -> list[str]:
    ids = [call.id for call in message.tool_calls]
    return [f"calls twice with the id `{one}`" for one in _repeated(ids)]


def _missing(before: Message, message: Message) -> list[str]:
    answered = {result.id for result in message.tool_results}
    return [
        f"has no result for the tool call `{call.id}` before it"
        for call in before.tool_calls
        if call.id not in answered
    ]


def _stray(before: Message | None, message: Message) -> list[str]:
    asked = {call.id for call in before.tool_calls} if before else set[str]()
    ids = [result.id for result in message.tool_results]
    stray = [f"has a result without a call: `{one}`" for one in ids if one not in asked]
    return stray + [f"answers the tool call `{one}` twice" for one in _repeated(ids)]


def _repeated(ids: list[str]) -> list[str]:
    return sorted({one for one in ids if ids.count(one) > 1}) if len(set(ids)) < len(ids) else []


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
    answers = tuple([by_id.get(call.id) or ToolResult.error(call.id, LOST) for call in calls])
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


@frozen
class ResultLimits:
    """How much text of each tool result a model is given.

    Args:
        most: Bytes of UTF-8.
        by_tool: The same for tools by name or pattern (`docs__*`); the first that fits holds.
    """

    most: int
    by_tool: Mapping[str, int] = _NO_TOOLS

    @property
    def least(self) -> int:
        """The smallest of the limits."""
        return min(self.most, *self.by_tool.values()) if self.by_tool else self.most

    def of(self, tool: str) -> int:
        """Return the limit of one tool."""
        found = (most for name, most in self.by_tool.items() if fnmatchcase(tool, name))
        return next(found, self.most)

    def apply(self, message: Message, calls: tuple[ToolCall, ...]) -> Message:
        """Shorten the long results of a message.

        Args:
            message: The message.
            calls: The calls its results answer.

        Returns:
            The message itself where none is long.
        """
        if all(size_of(result) <= self.least for result in message.tool_results):
            return message
        names = {call.id: call.name for call in calls}
        results = tuple(
            [
                shortened(result, self.of(names.get(result.id, "")))
                for result in message.tool_results
            ]
        )
        if all(map(lambda one, two: one is two, results, message.tool_results)):
            return message
        return replace(message, tool_results=results, native=None)


def size_of(result: ToolResult) -> int:
    """Return how many bytes of UTF-8 the texts of a result take, at most.

    In a text with characters other than ASCII, four bytes are counted for each, so that
    this takes the same time for texts of any length.
    """
    size = 0
    for block in result.content:
        text = _text_of(block)
        if text is not None:
            size += len(text) if text.isascii() else 4 * len(text)
    return size


def text_of_result(result: ToolResult) -> str:
    """Return the texts of a result, embedded documents among them, joined by newlines."""
    return "\n".join(_texts(result))


def shortened(result: ToolResult, most: int) -> ToolResult:
    """Shorten a result to about `most` bytes of text.

    Args:
        result: The result; images and links in it stay.
        most: Bytes of UTF-8 to keep of its texts; the note on what is missing is extra.

    Returns:
        The result itself if it is not longer than that.
    """
    if size_of(result) <= most:
        return result
    text = text_of_result(result)
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= most:
        return result
    tail_bytes = most // _TAIL_SHARE
    head = encoded[: most - tail_bytes].decode("utf-8", "ignore")
    tail = encoded[len(encoded) - tail_bytes :].decode("utf-8", "ignore")
    note = (
        f"[{len(text) - len(head) - len(tail):,} of {len(text):,} characters are left out here."
        f" The whole is {RESULTS}{result.id}: `read_result` reads it,"
        f" on from character {len(head)}, or searches it]"
    )
    cut = TextContent(f"{head}\n{note}\n{tail}")
    rest = tuple(block for block in result.content if _text_of(block) is None)
    return replace(result, content=(cut, *rest), structured=None)


def _texts(result: ToolResult) -> Iterator[str]:
    for block in result.content:
        text = _text_of(block)
        if text is not None:
            yield text


def _text_of(block: Content) -> str | None:
    return block.text if isinstance(block, TextContent | EmbeddedResource) else None
