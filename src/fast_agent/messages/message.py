"""Messages: immutable values that a history shares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.messages.content import NOTHING, Content, Empty, TextContent
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.text.json_value import JsonObject, JsonValue

Role: TypeAlias = Literal["user", "assistant"]

StopReason: TypeAlias = Literal[
    "endTurn",
    "toolUse",
    "maxTokens",
    "maxIterations",
    "stopSequence",
    "repetition",
    "refusal",
    "cancelled",
    "timeout",
    "error",
]


@frozen
class ToolCall:
    """A call the model asks for.

    Args:
        id: Unique within a history; its result carries the same id.
        name: The tool's name as the model saw it.
        arguments: JSON object of arguments.
        extra: Unknown fields, kept.
    """

    id: str
    name: str
    arguments: JsonObject = NOTHING
    extra: JsonObject = NOTHING


@frozen
class ToolResult:
    """What a tool call gave.

    Args:
        id: The id of the call it answers.
        content: Blocks for the model.
        is_error: The call failed; the content says why.
        structured: Structured content in addition to the blocks, or None.
        extra: Unknown fields, kept.
    """

    id: str
    content: tuple[Content, ...] = ()
    is_error: bool = False
    structured: JsonValue = None
    extra: JsonObject = NOTHING

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return text_of(self.content)


NO_CHANNELS: Mapping[str, tuple[Content, ...]] = Empty()
"""The channels of a message that has none."""


@frozen
class Message:
    """One message of a history.

    Args:
        role: Who speaks. Tool results are carried by `user` messages.
        content: Blocks, in order.
        tool_calls: Calls an assistant message asks for, in order.
        tool_results: Results a user message carries, in call order.
        channels: Side content by name, such as `reasoning`.
        native: The provider's own form of the message, as JSON, for exact replay; None elsewhere.
        stop_reason: Why an assistant message ended; a known `StopReason` or the file's own word.
        phase: The phase found in a file, preserved.
        is_template: Seeded by a card's `messages`; survives a plain history clear.
        timestamp: ISO 8601 text or seconds since the epoch as the file has it, or None.
        extra: Unknown fields, kept.
    """

    role: Role
    content: tuple[Content, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    channels: Mapping[str, tuple[Content, ...]] = NO_CHANNELS
    native: JsonValue = None
    stop_reason: str | None = None
    phase: str | None = None
    is_template: bool = False
    timestamp: str | float | int | None = None
    extra: JsonObject = NOTHING

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return text_of(self.content)

    def without_native(self) -> Message:
        """Return the message without the provider's native form, for another agent to keep."""
        return self if self.native is None else replace(self, native=None)

    @classmethod
    def user(cls, text: str) -> Message:
        """Make a user message of one text block."""
        return cls("user", (TextContent(text),))

    @classmethod
    def assistant(cls, text: str, stop_reason: StopReason = "endTurn") -> Message:
        """Make an assistant message of one text block."""
        return cls("assistant", (TextContent(text),), stop_reason=stop_reason)


def text_of(content: tuple[Content, ...]) -> str:
    """Join the text blocks of `content` by newlines."""
    if len(content) == 1:
        block = content[0]
        return block.text if isinstance(block, TextContent) else ""
    return "\n".join(block.text for block in content if isinstance(block, TextContent))
