"""Long results: how much of a tool result a model is given, and where the rest of it is.

A history keeps every result whole, and so do the session's log and files. Only the view of it,
which is what a model is given, has long ones shortened to their head and tail, with an address by
which the tool `read_result` reads the rest.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from fast_agent.messages.message import EmbeddedResource, Empty, TextContent
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fast_agent.messages.message import Content, Message, ToolCall, ToolResult

RESULTS: Final = "session://results/"
"""Prefix of the addresses of whole results; the id of the call follows."""

_NO_TOOLS: Final[Mapping[str, int]] = Empty()
_TAIL_SHARE: Final = 4  # the start of a result is more informative than its end


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
        return min((self.most, *self.by_tool.values()))

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
    for text in _texts(result):
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
