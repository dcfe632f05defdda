"""Messages in the provider library's form, and back.

Every content block reaches the provider. Text, images, sounds and documents go as themselves; a
resource that is text goes as text with its address; a link, and a block no provider knows, is
described in a line of text, so that an old message never stops a conversation. Media a provider
refuses in a user message is an error that names it (see `provider_errors`).

Reasoning goes back to a provider in the form that provider gave it, through `Message.native`, and
is otherwise left out: another provider could not check its signature.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from xml.sax.saxutils import quoteattr

from pydantic_ai import messages as lib

from fast_agent.errors import ModelError
from fast_agent.messages.message import (
    NO_CHANNELS,
    NO_OBJECT,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Message,
    OpaqueContent,
    ResourceLink,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.models.providers.classes import THINKING_IN_TEXT, split_thinking
from fast_agent.models.providers.errors import raw_reason
from fast_agent.text.json_value import plain_json, plain_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.messages.message import Content
    from fast_agent.text.json_value import JsonObject, JsonValue

REASONING: Final = "reasoning"
"""The channel of a message that holds what the model thought."""

_STOP_REASONS: Final = {
    "stop": "endTurn",
    "tool_call": "toolUse",
    "length": "maxTokens",
    "content_filter": "refusal",
}


@dataclass(slots=True)
class MessageConverter:
    """Turns the messages of one conversation into the library's form, each of them once.

    Args:
        provider: The provider the messages go to.
    """

    provider: str
    _source: list[Message] = field(default_factory=list[Message])
    _parts: list[lib.ModelMessage | None] = field(default_factory=list["lib.ModelMessage | None"])
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def convert(self, messages: Sequence[Message]) -> list[lib.ModelMessage]:
        """Convert a conversation; the part it shares with the one before is not done again."""
        kept = 0
        for ours, seen in zip(messages, self._source, strict=False):
            if ours is not seen:
                break
            kept += 1
        del self._source[kept:], self._parts[kept:]
        for position in range(kept, len(messages)):
            message = messages[position]
            self._source.append(message)
            self._parts.append(self._convert(message))
        return _merged(self._parts)

    def _convert(self, message: Message) -> lib.ModelMessage | None:
        if message.role == "assistant":
            for call in message.tool_calls:
                self._names[call.id] = call.name
            return _native(message, self.provider) or _response(message)
        parts: list[lib.ModelRequestPart] = [
            _tool_return(result, self._names.get(result.id, "unknown"))
            for result in message.tool_results
        ]
        content = [item for block in message.content for item in _named(block)]
        if content:
            only = content[0]
            whole = only if len(content) == 1 and isinstance(only, str) else content
            parts.append(lib.UserPromptPart(whole))
        return lib.ModelRequest(parts) if parts else None


def _merged(parts: Sequence[lib.ModelMessage | None]) -> list[lib.ModelMessage]:
    """Join neighbours of the same role, which some providers ask for, and drop what is empty."""
    merged: list[lib.ModelMessage] = []
    for item in parts:
        last = merged[-1] if merged else None
        if isinstance(item, lib.ModelRequest) and isinstance(last, lib.ModelRequest):
            merged[-1] = lib.ModelRequest([*last.parts, *item.parts])
        elif item is not None:
            merged.append(item)
    return merged


def _native(message: Message, provider: str) -> lib.ModelMessage | None:
    """Take the provider's own form, unless it is another's or the message was changed since."""
    native = message.native
    if not isinstance(native, Mapping) or native.get("provider") != provider:
        return None
    from pydantic import ValidationError

    try:
        [response] = lib.ModelMessagesTypeAdapter.validate_python([native.get("response")])
    except ValidationError:
        return None
    if not isinstance(response, lib.ModelResponse):
        return None
    again = message_of(response, provider)
    same = again.content == message.content and again.tool_calls == message.tool_calls
    return response if same else None


def _response(message: Message) -> lib.ModelMessage | None:
    parts: list[lib.ModelResponsePart] = []
    for block in message.content:
        content = _user_content(block)
        if isinstance(content, lib.BinaryContent):
            parts.append(lib.FilePart(content))
        elif content:
            parts.append(lib.TextPart(content))
    parts.extend(
        lib.ToolCallPart(call.name, plain_object(call.arguments), call.id)
        for call in message.tool_calls
    )
    return lib.ModelResponse(parts) if parts else None


def _tool_return(result: ToolResult, name: str) -> lib.ToolReturnPart:
    content: list[str | lib.BinaryContent] = [_user_content(block) for block in result.content]
    if not content and result.structured is not None:
        content = [json.dumps(plain_json(result.structured), ensure_ascii=False)]
    texts = [item for item in content if isinstance(item, str)]
    return lib.ToolReturnPart(
        tool_name=name,
        content="\n".join(texts) if len(texts) == len(content) else content,
        tool_call_id=result.id,
        outcome="failed" if result.is_error else "success",
    )


def _named(block: Content) -> Iterator[str | lib.BinaryContent]:
    """Yield the content of a block, with a line before a document that names it.

    The wires of the providers have no name, and without one a model cannot distinguish two.
    """
    item = _user_content(block)
    if isinstance(block, EmbeddedResource) and isinstance(item, lib.BinaryContent):
        yield f"[{block.uri.rstrip('/').rpartition('/')[2] or block.uri}]"
    yield item


def _user_content(block: Content) -> str | lib.BinaryContent:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _binary(_decoded(block.data, block.mime_type), block.mime_type)
        case EmbeddedResource():
            return _resource(block)
        case ResourceLink():
            kind = f", {block.mime_type}" if block.mime_type else ""
            return f"[resource {block.name}: {block.uri}{kind}]"
        case OpaqueContent():
            return f"[a block of the type {block.data.get('type')!r}, which cannot be shown here]"


def _resource(block: EmbeddedResource) -> str | lib.BinaryContent:
    mime_type = block.mime_type or ("text/plain" if block.text is not None else "")
    if block.text is not None:
        text = block.text
    else:
        data = _decoded(block.blob or "", mime_type)
        if not mime_type.startswith("text/"):
            if _is_media(mime_type):
                return _binary(data, mime_type)
            return f"[resource {block.uri}: {len(data)} bytes of {mime_type or 'unknown type'}]"
        text = data.decode("utf-8", errors="replace")
    inner = text.replace("</resource", "&lt;/resource")
    kind = quoteattr(mime_type)
    return f"<resource uri={quoteattr(block.uri)} type={kind}>\n{inner}\n</resource>"


def _binary(data: bytes, mime_type: str) -> lib.BinaryContent:
    return lib.BinaryContent(data=data, media_type=mime_type)


def _is_media(mime_type: str) -> bool:
    return mime_type == "application/pdf" or mime_type.startswith(("image/", "audio/", "video/"))


def _decoded(data: str, mime_type: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelError(
            f"a block of the type `{mime_type}` is not valid base64",
            hint="attach the file again, or remove the message from the history",
        ) from error


def message_of(
    response: lib.ModelResponse, provider: str, output_tool: str | None = None
) -> Message:
    """Make a message of a complete answer.

    Args:
        response: What the provider answered.
        provider: Which one, to send the same form back to it.
        output_tool: The tool whose arguments are the structured answer, or None.
    """
    content: list[Content] = []
    calls: list[ToolCall] = []
    answer: str | None = None
    whole = True
    for part in response.parts:
        match part:
            case lib.TextPart(content=text) | lib.CompactionPart(content=str(text)) if text:
                content.append(TextContent(text))
            case lib.FilePart():
                content.append(_file(part.content))
            case lib.ToolCallPart(tool_name=name) if name == output_tool:
                answer = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
            case lib.ToolCallPart():
                arguments = _arguments(part)
                if response.finish_reason == "length" and NO_OBJECT in arguments:
                    whole = False  # the limit cut the call short: it cannot be made
                else:
                    calls.append(ToolCall(part.tool_call_id, part.tool_name, arguments))
            case _:
                pass  # the provider's own tools and marks live in the native form only
    refusal = (response.provider_details or {}).get("refusal")
    if not content and isinstance(refusal, str) and refusal:
        content.append(TextContent(refusal))
        whole = False
    thoughts = _thoughts(response)
    thinking = _taken_out(content) if provider in THINKING_IN_TEXT else ""
    if thinking:
        thoughts = {REASONING: (TextContent(thinking),)}
        whole = False  # reasoning does not go back to these
    if answer is not None:
        content = [TextContent(answer)]
        calls = []
        whole = False
    # An answer of nothing but text goes back as it is: its own form says no more.
    whole = whole and not all(map(_is_bare, response.parts))
    return Message(
        "assistant",
        tuple(content),
        tool_calls=tuple(calls),
        channels=thoughts,
        native=_stored_response(response, provider) if whole else None,
        stop_reason=_stop_reason(response, bool(calls)),
    )


def _arguments(part: lib.ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call; what is not an object is held under `NO_OBJECT`."""
    if part.args == "null":
        return {}
    arguments = part.args_as_dict()
    if _is_finite(arguments):
        return arguments
    return {NO_OBJECT: part.args if isinstance(part.args, str) else repr(part.args)}


def _is_finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, cast("dict[str, object]", value).values()))
        case list():
            return all(map(_is_finite, cast("list[object]", value)))
        case _:
            return True


def _taken_out(content: list[Content]) -> str:
    """Remove the reasoning from the start of an answer's text, and return it."""
    first = content[0] if content else None
    if not isinstance(first, TextContent):
        return ""
    thinking, rest = split_thinking(first.text)
    if thinking:
        content[0:1] = [TextContent(rest)] if rest else []
    return thinking


def _thoughts(response: lib.ModelResponse) -> Mapping[str, tuple[Content, ...]]:
    thoughts: tuple[Content, ...] = tuple(
        TextContent(part.content)
        for part in response.parts
        if isinstance(part, lib.ThinkingPart) and part.content
    )
    return {REASONING: thoughts} if thoughts else NO_CHANNELS


def _is_bare(part: lib.ModelResponsePart) -> bool:
    """Whether a part is a text, without a name or details that its provider wants back."""
    return (
        isinstance(part, lib.TextPart)
        and bool(part.content)
        and not (part.id or part.provider_details or part.citations)
    )


def _stored_response(response: lib.ModelResponse, provider: str) -> JsonObject:
    [data] = cast(
        "list[dict[str, JsonValue]]",
        lib.ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True),
    )
    data.pop("usage", None)
    return {"provider": provider, "response": data}


def _file(data: lib.BinaryContent) -> Content:
    encoded = base64.b64encode(data.data).decode("ascii")
    kind = data.media_type
    if kind.startswith("image/"):
        return ImageContent(encoded, kind)
    if kind.startswith("audio/"):
        return AudioContent(encoded, kind)
    return EmbeddedResource(f"file:///{data.identifier}", kind, blob=encoded)


def _stop_reason(response: lib.ModelResponse, calls: bool) -> str:
    raw = raw_reason(response)
    if raw == "stop_sequence":
        return "stopSequence"
    if response.finish_reason is None and raw is not None:
        return raw  # an unknown reason is kept as it came
    reason = _STOP_REASONS.get(response.finish_reason or "", "endTurn")
    if reason in {"endTurn", "toolUse"}:
        return "toolUse" if calls else "endTurn"
    return reason
