"""JSON histories (`{"messages": [...]}`) and their messages, with content blocks as in MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.diagnostics.rules import INVALID_MESSAGE
from fast_agent.errors import HistoryError
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_text import (
    JsonMap,
    JsonTextError,
    Node,
    Problem,
    parse_json,
    refuse,
    write_json,
)
from fast_agent.messages.message import (
    NO_CHANNELS,
    NOTHING,
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    Message,
    OpaqueContent,
    ResourceLink,
    Role,
    TextContent,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.json_text import ShapeProblem
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Source

_TEXT = frozenset({"type", "text"})
_MEDIA = frozenset({"type", "data", "mimeType"})
_LINK = frozenset({"type", "uri", "name", "mimeType"})
_EMBEDDED = frozenset({"type", "resource"})
_RESOURCE = frozenset({"uri", "mimeType", "text", "blob"})
_TYPES = frozenset({"text", "image", "audio", "resource_link", "resource"})


NATIVE = "fast-agent/native"
"""The field that keeps a provider's own form of a message."""
_CALL_METHOD = "tools/call"
_CALL = frozenset({"method", "params"})
_PARAMS = frozenset({"name", "arguments"})
_RESULT = frozenset({"content", "isError", "structuredContent"})
_MESSAGE = frozenset(
    {
        "role",
        "content",
        "tool_calls",
        "tool_results",
        "channels",
        "stop_reason",
        "phase",
        "is_template",
        "timestamp",
        NATIVE,
    }
)


def content_to_wire(block: Content) -> dict[str, JsonValue]:
    """Convert a block to its wire form.

    Args:
        block: Any block.

    Returns:
        A JSON object with camelCase keys that `content_from_wire` reads back equal.

    Raises:
        HistoryError: `extra` repeats a field the block has, an embedded resource does not have
            exactly one of text and blob, or an opaque block has a type that is known.
    """
    match block:
        case TextContent(text, extra):
            return merged({"type": "text", "text": text}, extra, _TEXT)
        case ImageContent(data, mime_type, extra):
            return merged({"type": "image", "data": data, "mimeType": mime_type}, extra, _MEDIA)
        case AudioContent(data, mime_type, extra):
            return merged({"type": "audio", "data": data, "mimeType": mime_type}, extra, _MEDIA)
        case ResourceLink(uri, name, mime_type, extra):
            wire: dict[str, JsonValue] = {"type": "resource_link", "uri": uri, "name": name}
            if mime_type is not None:
                wire["mimeType"] = mime_type
            return merged(wire, extra, _LINK)
        case EmbeddedResource():
            wire = {"type": "resource", "resource": _resource_to_wire(block)}
            return merged(wire, block.extra, _EMBEDDED)
        case OpaqueContent(data):
            kind = data.get("type")
            if not isinstance(kind, str) or kind in _TYPES:
                raise HistoryError(f"an opaque block cannot have the type `{kind}`")
            return dict(data)


def contents_to_wire(blocks: Iterable[Content]) -> list[JsonValue]:
    """Convert blocks to their wire form, in order."""
    return [content_to_wire(block) for block in blocks]


def content_from_wire(value: JsonValue) -> Content:
    """Read one block.

    Args:
        value: Its wire form; an unknown type becomes an `OpaqueContent`.

    Returns:
        The block.

    Raises:
        HistoryError: A field is missing or of the wrong kind.
    """
    node = Node(value, ("content",), [])
    block = read_content(node)
    if block is None or node.problems:
        raise HistoryError("; ".join(problem.message for problem in node.problems))
    return block


def read_contents(node: Node) -> tuple[Content, ...]:
    """Read a list of blocks, or a single one in its place, noting problems in the node."""
    if isinstance(node.value, str):
        wanted: JsonValue = [{"type": "text", "text": node.value}]
        hint = 'write `[{"type": "text", "text": …}]`'
        node.report("must be a list of content blocks, not a string", hint, replacement=wanted)
        return ()
    blocks = [node] if isinstance(node.value, Mapping) else node.items()
    return tuple([block for item in blocks if (block := read_content(item)) is not None])


def read_content(node: Node) -> Content | None:
    """Read one block; note problems in the node and return None if its shape is unknown."""
    if isinstance(node.value, str):
        wanted: JsonObject = {"type": "text", "text": node.value}
        hint = 'write `{"type": "text", "text": …}`'
        node.report("must be a content block, not a string", hint, replacement=wanted)
        return None
    if node.fields() is None:
        return None
    kind = node.optional_string("type")
    if kind is None:
        if node.field("type") is None:
            node.report("has no `type`")
        return None
    match kind:
        case "text":
            return TextContent(node.string("text"), node.rest(_TEXT))
        case "image":
            return ImageContent(node.string("data"), _media_type(node), node.rest(_MEDIA))
        case "audio":
            return AudioContent(node.string("data"), _media_type(node), node.rest(_MEDIA))
        case "resource_link":
            return ResourceLink(
                node.string("uri"),
                node.string("name"),
                node.optional_string("mimeType"),
                node.rest(_LINK),
            )
        case "resource":
            inner = node.child("resource", node.field("resource"))
            return read_resource(inner, node.rest(_EMBEDDED))
        case _:
            return OpaqueContent(node.fields() or NOTHING)


def read_resource(node: Node, extra: JsonObject = NOTHING) -> EmbeddedResource | None:
    """Read the inner object of an embedded resource, noting problems in the node."""
    if node.fields() is None:
        return None
    text, blob = node.optional_string("text"), node.optional_string("blob")
    if node.field("text") is None and node.field("blob") is None:
        node.report("the resource has neither `text` nor `blob`")
    elif text is not None and blob is not None:
        node.child("blob", blob).report("and `text` cannot both be there", key=True)
    return EmbeddedResource(
        node.string("uri"),
        node.optional_string("mimeType"),
        text,
        blob,
        node.rest(_RESOURCE),
        extra,
    )


def _media_type(node: Node) -> str:
    hint = "write `mimeType`" if node.field("mime_type") else None
    return node.string("mimeType", hint=hint)


def _resource_to_wire(block: EmbeddedResource) -> dict[str, JsonValue]:
    wire: dict[str, JsonValue] = {"uri": block.uri}
    if block.mime_type is not None:
        wire["mimeType"] = block.mime_type
    if (block.text is None) == (block.blob is None):
        raise HistoryError(f"the resource `{block.uri}` must have either text or a blob")
    if block.text is not None:
        wire["text"] = block.text
    else:
        wire["blob"] = block.blob
    return merged(wire, block.resource_extra, _RESOURCE)


def merged(
    wire: dict[str, JsonValue], extra: JsonObject, known: frozenset[str]
) -> dict[str, JsonValue]:
    """Add unknown fields after known ones; a known name among them is a HistoryError."""
    if not extra:
        return wire
    clash = known & extra.keys()
    if clash:
        raise HistoryError(f"the extra field `{min(clash)}` has the name of a known one")
    return {**wire, **extra}


def message_to_wire(message: Message) -> dict[str, JsonValue]:
    """Convert a message to its JSON form; unset fields are left out.

    Args:
        message: Any message.

    Returns:
        A JSON object that `message_from_wire` reads back equal.

    Raises:
        HistoryError: Two calls or two results have one id, or something in the message has no wire
            form.
    """
    wire: dict[str, JsonValue] = {
        "role": message.role,
        "content": contents_to_wire(message.content),
    }
    if message.tool_calls:
        calls = {call.id: _call_to_wire(call) for call in message.tool_calls}
        _must_be_unique("calls", calls, [call.id for call in message.tool_calls])
        wire["tool_calls"] = calls
    if message.tool_results:
        results = {result.id: _result_to_wire(result) for result in message.tool_results}
        _must_be_unique("results", results, [result.id for result in message.tool_results])
        wire["tool_results"] = results
    if message.channels:
        wire["channels"] = {
            name: contents_to_wire(blocks) for name, blocks in message.channels.items()
        }
    if message.stop_reason is not None:
        wire["stop_reason"] = message.stop_reason
    if message.phase is not None:
        wire["phase"] = message.phase
    if message.is_template:
        wire["is_template"] = True
    if message.timestamp is not None:
        wire["timestamp"] = message.timestamp
    if message.native is not None:
        wire[NATIVE] = message.native
    return merged(wire, message.extra, _MESSAGE)


def message_from_wire(value: JsonValue) -> Message:
    """Read one message.

    Args:
        value: Its JSON form.

    Returns:
        The message.

    Raises:
        HistoryError: A field is missing or of the wrong kind; every problem is named.
    """
    node = Node(value, ("message",), [])
    message = read_message(node)
    if message is None or node.problems:
        raise HistoryError("; ".join(problem.message for problem in node.problems))
    return message


def result_to_wire(result: ToolResult) -> dict[str, JsonValue]:
    """Convert a result to the JSON form it has in a message: an object of its id."""
    return {result.id: _result_to_wire(result)}


def result_from_wire(value: JsonValue) -> ToolResult:
    """Read one result.

    Args:
        value: Its JSON form.

    Raises:
        HistoryError: A field is missing or of the wrong kind.
    """
    wire: JsonObject = {"role": "user", "content": [], "tool_results": value}
    return message_from_wire(wire).tool_results[0]


def read_message(node: Node) -> Message | None:
    """Read one message, noting problems in the node; None if it is not an object."""
    if node.fields() is None:
        return None
    return Message(
        _role(node),
        read_contents(node.child("content", node.field("content"))),
        _calls(node.child("tool_calls", node.field("tool_calls"))),
        _results(node.child("tool_results", node.field("tool_results"))),
        _channels(node.child("channels", node.field("channels"))),
        node.field(NATIVE),
        node.optional_string("stop_reason"),
        node.optional_string("phase"),
        node.flag("is_template"),
        _timestamp(node),
        node.rest(_MESSAGE),
    )


def _role(node: Node) -> Role:
    role = node.field("role")
    if role in {"user", "assistant"} if isinstance(role, str) else False:
        return cast("Role", role)
    if role is None:
        node.report("has no `role`", hint="write `user` or `assistant`")
        return "user"
    hint = None
    if role == "system":
        hint = "put the text into the field `system` next to `messages`"
    node.child("role", role).must_be("`user` or `assistant`", hint=hint)
    return "user"


def _timestamp(node: Node) -> str | float | int | None:
    value = node.field("timestamp")
    if value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool)):
        return value
    node.child("timestamp", value).must_be("a string or a number")
    return None


def _calls(node: Node) -> tuple[ToolCall, ...]:
    return tuple([call for key, entry in node.entries() if (call := _call(key, entry))])


def _call(key: str, node: Node) -> ToolCall | None:
    if node.fields() is None:
        return None
    method = node.field("method")
    if method not in {None, _CALL_METHOD} if isinstance(method, str) else method is not None:
        node.child("method", method).must_be(f"`{_CALL_METHOD}`")
    params = node.child("params", node.field("params"))
    if params.fields() is None:
        return None
    name = params.string("name")
    arguments = params.field("arguments")
    if arguments is not None:
        arguments = params.child("arguments", arguments).fields()
    extra = node.rest(_CALL)
    inner = params.rest(_PARAMS)
    if inner:
        extra = {**extra, "params": inner}
    return ToolCall(key, name, arguments or NOTHING, extra)


def _results(node: Node) -> tuple[ToolResult, ...]:
    return tuple([result for key, entry in node.entries() if (result := _result(key, entry))])


def _result(key: str, node: Node) -> ToolResult | None:
    if node.fields() is None:
        return None
    return ToolResult(
        key,
        read_contents(node.child("content", node.field("content"))),
        node.flag("isError"),
        node.field("structuredContent"),
        node.rest(_RESULT),
    )


def _channels(node: Node) -> Mapping[str, tuple[Content, ...]]:
    channels = {key: read_contents(entry) for key, entry in node.entries()}
    return channels or NO_CHANNELS


def _call_to_wire(call: ToolCall) -> dict[str, JsonValue]:
    params: dict[str, JsonValue] = {"name": call.name, "arguments": dict(call.arguments)}
    extra = call.extra
    inner = extra.get("params")
    if inner is not None:
        if not isinstance(inner, dict) or not inner:
            raise HistoryError(f"the extra field `params` of the call `{call.id}` is not an object")
        params = merged(params, inner, _PARAMS)
        extra = {key: value for key, value in extra.items() if key != "params"}
    return merged({"method": _CALL_METHOD, "params": params}, extra, _CALL)


def _result_to_wire(result: ToolResult) -> dict[str, JsonValue]:
    wire: dict[str, JsonValue] = {
        "content": contents_to_wire(result.content),
        "isError": result.is_error,
    }
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    return merged(wire, result.extra, _RESULT)


def _must_be_unique(what: str, by_id: JsonObject, ids: Iterable[str]) -> None:
    if len(by_id) != len(list(ids)):
        raise HistoryError(f"two tool {what} of one message have the same id")


_DOCUMENT = frozenset({"system", "messages"})


def read_json_history(source: Source) -> HistoryDocument:
    """Read a JSON history.

    Args:
        source: The text and its path.

    Returns:
        What it holds. The older form, in which `content` is a single object, is read too.

    Raises:
        HistoryError: It is not strict JSON, or a message is invalid; `diagnostics` has all.
    """
    try:
        value = parse_json(source.text)
    except JsonTextError as error:
        problems = [Problem.of_fault(fault) for fault in error.faults]
        raise refuse(source, problems) from error
    node = Node(value, (), [])
    transcript = _read_document(node)
    if node.problems:
        raise refuse(source, located(node.problems, source.text))
    return transcript


def write_json_history(transcript: HistoryDocument) -> str:
    """Write a JSON history.

    Args:
        transcript: What to write.

    Returns:
        Indented JSON with a final line end, which `read_json_history` reads back equal.

    Raises:
        HistoryError: Something in a message has no JSON form; the message is named by its index.
    """
    document: dict[str, JsonValue] = {}
    if transcript.system is not None:
        document["system"] = transcript.system
    messages: list[JsonValue] = []
    for index, message in enumerate(transcript.messages):
        try:
            messages.append(message_to_wire(message))
        except HistoryError as error:
            raise HistoryError(
                f"message {index} cannot be written: {error.message}", hint=error.hint
            ) from error
    document["messages"] = messages
    return to_json(merged(document, transcript.extra, _DOCUMENT), indent=2) + "\n"


def json_places(source: Source) -> list[tuple[int, int]]:
    """Find where each message of a right JSON history opens, in offsets."""
    places = JsonMap.of(source.text)
    starts: list[tuple[int, int]] = []
    while (path := ("messages", len(starts))) in places.values:
        start = places.values[path][0]
        starts.append((start, start + 1))
    return starts


def to_json(value: JsonValue, *, indent: int | None = None) -> str:
    """Write JSON; what has no JSON form is a HistoryError."""
    try:
        return write_json(value, indent=indent)
    except ValueError as error:
        raise HistoryError(f"the history cannot be written as JSON: {error}") from error


def located(found: list[ShapeProblem], text: str, offset: int = 0) -> list[Problem]:
    """Locate problems in the JSON text that starts at `offset` of a file."""
    if not found:
        return []
    places = JsonMap.of(text)
    problems: list[Problem] = []
    for item in found:
        start, end = places.place(item.path, key=item.key)
        if text[start : start + 1] in {"{", "["}:
            end = start + 1  # point at where it opens, not along all its lines
        replacement = None if item.replacement is None else write_json(item.replacement)
        problems.append(
            Problem(
                INVALID_MESSAGE, item.message, start + offset, end + offset, item.hint, replacement
            )
        )
    return problems


def _read_document(node: Node) -> HistoryDocument:
    if isinstance(node.value, list):
        node.must_be("an object", hint='write `{"messages": […]}` around the list')
        return HistoryDocument()
    if node.fields() is None:
        return HistoryDocument()
    listed = node.child("messages", node.field("messages"))
    if listed.value is None:
        node.report("has no `messages`", hint='write `{"messages": […]}`')
    messages = tuple([message for item in listed.items() if (message := read_message(item))])
    return HistoryDocument(node.optional_string("system"), messages, node.rest(_DOCUMENT))
