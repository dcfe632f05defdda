"""Messages and their content blocks: immutable values that a history shares.

Blocks are those of MCP. Each keeps what it does not know in `extra` (camelCase wire names), so that
a file read and written again loses nothing.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias, TypeVar

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

_Value = TypeVar("_Value", covariant=True)  # noqa: PLC0105  (mappings are read-only here)


class EmptyMapping(Mapping[str, _Value]):
    """A mapping with nothing in it that cannot be changed, and so may be a shared default."""

    __slots__ = ()

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"


NOTHING: Mapping[str, JsonValue] = EmptyMapping()
"""The empty JSON object shared by all values that carry none."""


@frozen
class TextContent:
    """Plain text."""

    text: str
    extra: JsonObject = NOTHING


@frozen
class ImageContent:
    """An image; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@frozen
class AudioContent:
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    extra: JsonObject = NOTHING


@frozen
class ResourceLink:
    """A resource named but not carried."""

    uri: str
    name: str
    mime_type: str | None = None
    extra: JsonObject = NOTHING


@frozen
class EmbeddedResource:
    """A resource carried in the message: exactly one of `text` and `blob` (base64) is set.

    `resource_extra` holds unknown fields of the inner `resource` object, `extra` the block's own.
    """

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    resource_extra: JsonObject = NOTHING
    extra: JsonObject = NOTHING


@frozen
class OpaqueContent:
    """A block of a type this version does not know, kept as it came."""

    data: JsonObject


Content: TypeAlias = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | OpaqueContent
)


@frozen
class Media:
    """Bytes and what they are.

    Args:
        data: The bytes.
        media_type: Such as `application/pdf` or `image/png`.
        name: A file name for models and people, or None.
    """

    data: bytes
    media_type: str
    name: str | None = None

    def content(self) -> Content:
        """Return them as a content block.

        Raises:
            ValueError: The media type is not of the form `type/subtype`, or bytes of a text type
                are not UTF-8.
        """
        kind, slash, rest = self.media_type.partition("/")
        if not (kind and slash and rest):
            raise ValueError(f"`{self.media_type}` is not a media type, such as `application/pdf`")
        if kind == "text":
            return TextContent(self.data.decode())
        text = b64encode(self.data).decode()
        if kind == "image":
            return ImageContent(text, self.media_type)
        if kind == "audio":
            return AudioContent(text, self.media_type)
        name = self.name or "result"
        return EmbeddedResource(f"file:///{name}", blob=text, mime_type=self.media_type)


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

    def __str__(self) -> str:
        return self.text

    @classmethod
    def error(cls, call_id: str, text: str) -> ToolResult:
        """Make the result of a call that failed."""
        return cls(call_id, (TextContent(text),), is_error=True)


NO_OBJECT: Final = "INVALID_JSON"
"""The one argument of a call whose arguments are not a JSON object: their text."""

NO_CHANNELS: Mapping[str, tuple[Content, ...]] = EmptyMapping()
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

    def __str__(self) -> str:
        return self.text

    @property
    def begins_turn(self) -> bool:
        """Whether it started a turn: a user's message, not a template and not tool results."""
        return self.role == "user" and not self.is_template and not self.tool_results

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
