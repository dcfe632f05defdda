"""JSON histories: `{"messages": [...]}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.rules import INVALID_MESSAGE
from fast_agent.errors import HistoryError
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_message import merged, message_to_wire, read_message
from fast_agent.messages.json_shape import Node
from fast_agent.messages.json_text import JsonMap, JsonTextError, parse_json, write_json
from fast_agent.messages.problem import Problem, refuse

if TYPE_CHECKING:
    from fast_agent.messages.json_shape import ShapeProblem
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.source import Source

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
