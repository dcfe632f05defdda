"""Delimited histories: plain text under lines such as `---USER`.

Text, and resources after it, are written as they are. What plain text cannot carry (tool calls,
results, other blocks, odd white space, a line that is itself a delimiter) goes into one more
resource section of the message, with the type `MESSAGE_PART` and JSON in its text. What belongs to
the whole file, such as a system prompt that is not plain, goes into a first one, `FILE_PART`.
An assistant section ends its turn (`endTurn`) unless a part says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from fast_agent.diagnostics.rules import INVALID_RESOURCE_SECTION, MISPLACED_SECTION, NEAR_DELIMITER
from fast_agent.errors import HistoryError
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_message import (
    content_to_wire,
    located,
    message_to_wire,
    read_content,
    read_message,
    read_resource,
    to_json,
)
from fast_agent.messages.json_text import JsonTextError, Node, Problem, parse_json, refuse
from fast_agent.messages.message import Content, EmbeddedResource, Message, Role, TextContent
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.source import Source

MESSAGE_PART: Final = "application/vnd.fast-agent.message-part+json"
"""Media type of a section with what plain text cannot carry of the message it ends."""

FILE_PART: Final = "application/vnd.fast-agent.history-part+json"
"""Media type of a first section with what belongs to the whole file."""

USER: Final = "---USER"
ASSISTANT: Final = "---ASSISTANT"
RESOURCE: Final = "---RESOURCE"
SYSTEM: Final = "---SYSTEM"
DELIMITERS: Final = (USER, ASSISTANT, RESOURCE, SYSTEM)


@frozen
class Section:
    """A delimiter line and the text under it, in offsets of the whole text.

    Args:
        delimiter: The line; empty for text that no delimiter precedes.
        start: Where the delimiter line starts.
        body: Where the text under it starts.
        end: Where that text ends, without the line end before the next delimiter.
    """

    delimiter: str
    start: int
    body: int
    end: int

    def text_of(self, source: Source) -> str:
        """Return the text under the delimiter."""
        return source.text[self.body : self.end]


def delimited_places(source: Source) -> list[tuple[int, int]]:
    """Find where each message of a right delimited history opens, in offsets."""
    sections = [item for item in split_sections(source.text) if item.delimiter != SYSTEM]
    opening = [item for item in sections if item.delimiter != RESOURCE]
    if not opening:
        opening = sections[:1]
    elif sections[0].delimiter == RESOURCE and FILE_PART not in sections[0].text_of(source):
        opening.insert(0, sections[0])
    return [(item.start, item.start + max(1, len(item.delimiter))) for item in opening]


def split_sections(text: str) -> Iterator[Section]:
    """Split a text at its delimiter lines; anything before the first is a section without one."""
    delimiter, start, body, at = "", 0, 0, 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text.startswith("---", at) and text[at:end] in DELIMITERS:
            if delimiter or text[:at].strip():
                yield Section(delimiter, start, body, max(body, at - 1))
            delimiter, start, body = text[at:end], at, min(end + 1, len(text))
        at = end + 1
    yield Section(delimiter, start, body, len(text))


def near_delimiters(source: Source) -> Iterator[Problem]:
    """Find lines that almost are delimiters and are read as text."""
    at = 0
    for line in source.text.split("\n"):
        if line.lstrip().startswith("---") and line not in DELIMITERS:
            meant = "---" + line.replace("-", "").strip().upper()
            if meant in DELIMITERS:
                yield Problem(
                    NEAR_DELIMITER,
                    f"`{line}` is read as text, not as `{meant}`",
                    at,
                    at + len(line),
                    f"write exactly `{meant}`",
                    meant,
                )
        at += len(line) + 1


def trimmed(text: str) -> str:
    """Take blank lines off both ends; the first and last line keep their own white space."""
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last])


_ROLES: dict[str, Role] = {USER: "user", ASSISTANT: "assistant"}
_STOP_REASONS: dict[Role, str | None] = {"user": None, "assistant": "endTurn"}
_PART_URI = "fast-agent:history"
_RESOURCE_HINT = "write the JSON of one resource, or the path of one file, and nothing after it"

Attach: TypeAlias = Callable[[str], Content]
"""Reads the file a resource section names, relative to the history; raises HistoryError."""


def read_delimited_history(source: Source, attach: Attach | None = None) -> HistoryDocument:
    """Read a delimited history.

    Args:
        source: The text and its path.
        attach: Reads files that resource sections name; None refuses them.

    Returns:
        What it holds. Text without any delimiter is one user message; blank lines around the text
        of a section do not count.

    Raises:
        HistoryError: A section is misplaced or a resource is wrong; `diagnostics` has all problems.
    """
    sections = list(split_sections(source.text))
    if len(sections) == 1 and not sections[0].delimiter:
        text = trimmed(source.text)
        return HistoryDocument(messages=(Message.user(text),) if text else ())
    reader = _Reader(source, attach)
    for section in sections:
        reader.take(section)
    reader.close_message()
    if reader.problems:
        raise refuse(source, reader.problems)
    return HistoryDocument(reader.system, tuple(reader.messages), reader.extra)


def write_delimited_history(transcript: HistoryDocument) -> str:
    """Write a delimited history.

    Args:
        transcript: What to write.

    Returns:
        Text that `read_delimited_history` reads back equal.

    Raises:
        HistoryError: Something in a message has no JSON form; the message is named by its index.
    """
    lines = _head_lines(transcript)
    for index, message in enumerate(transcript.messages):
        try:
            lines += _message_lines(message)
        except HistoryError as error:
            raise HistoryError(
                f"message {index} cannot be written: {error.message}", hint=error.hint
            ) from error
    return "".join(f"{line}\n" for line in lines)


def _is_plain(text: str) -> bool:
    """Whether text under a delimiter is read back as it is."""
    if not text or "\r" in text or "\0" in text or trimmed(text) != text:
        return False
    if "---" in text and not set(DELIMITERS).isdisjoint(text.split("\n")):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can escape it, UTF-8 cannot hold it
        return False
    return True


def _head_lines(transcript: HistoryDocument) -> list[str]:
    system, extra = transcript.system, transcript.extra
    if not extra and system is None:
        return []
    if not extra and system is not None and (not system or _is_plain(system)):
        return [SYSTEM, system] if system else [SYSTEM]
    head: dict[str, JsonValue] = {}
    if system is not None:
        head["system"] = system
    if extra:
        head["extra"] = extra
    return _resource_lines(EmbeddedResource(_PART_URI, FILE_PART, to_json(head)))


def _message_lines(message: Message) -> list[str]:
    lines = [USER if message.role == "user" else ASSISTANT]
    content, taken = message.content, 0
    if content and isinstance(content[0], TextContent) and not content[0].extra:
        text = content[0].text
        if _is_plain(text):
            lines.append(text)
            taken = 1
    while taken < len(content):
        block = content[taken]
        if not isinstance(block, EmbeddedResource) or block.mime_type in {MESSAGE_PART, FILE_PART}:
            break
        lines += _resource_lines(block)
        taken += 1
    part = message_to_wire(replace(message, content=content[taken:]))
    del part["role"]
    if taken == len(content):
        del part["content"]
    if message.stop_reason == _STOP_REASONS[message.role]:
        part.pop("stop_reason", None)
    elif message.stop_reason is None:
        part["stop_reason"] = None
    if part:
        lines += _resource_lines(EmbeddedResource(_PART_URI, MESSAGE_PART, to_json(part)))
    return lines


def _resource_lines(block: EmbeddedResource) -> list[str]:
    return [RESOURCE, to_json(content_to_wire(block), indent=2)]


class _Reader:
    """Puts sections together to messages."""

    def __init__(self, source: Source, attach: Attach | None) -> None:
        self.source = source
        self.attach = attach
        self.problems: list[Problem] = []
        self.system: str | None = None
        self.extra = HistoryDocument().extra
        self.messages: list[Message] = []
        self.role: Role | None = None
        self.content: list[Content] = []
        self.part: dict[str, JsonValue] | None = None
        self.part_place = (0, 0)
        self.first = True

    def take(self, section: Section) -> None:
        if section.delimiter == RESOURCE:
            self._take_resource(section)
        elif section.delimiter == SYSTEM:
            self._take_system(section)
        elif section.delimiter:
            self._open_message(_ROLES[section.delimiter])
            text = trimmed(section.text_of(self.source))
            if text:
                self.content.append(TextContent(text))
        else:
            self._misplaced(
                section, "there is text before the first section", f"write `{USER}` above it"
            )
        self.first = False

    def close_message(self) -> None:
        """End the message that is open, if there is one."""
        if self.role is None:
            return
        wire: dict[str, JsonValue] = {"stop_reason": _STOP_REASONS[self.role]}
        wire |= self.part or {}
        wire["role"] = self.role
        node = Node(wire, (), [])
        message = read_message(node)
        self._note_inside(node)
        if message is not None:
            content = (*self.content, *message.content)
            self.messages.append(replace(message, content=content))
        self.role, self.content, self.part = None, [], None

    def _open_message(self, role: Role) -> None:
        self.close_message()
        self.role = role

    def _take_system(self, section: Section) -> None:
        if not self.first:
            self._misplaced(section, f"`{SYSTEM}` must come first", "move it to the top")
            return
        self.system = trimmed(section.text_of(self.source))

    def _take_resource(self, section: Section) -> None:
        block = self._resource(section)
        if block is None:
            return
        if isinstance(block, EmbeddedResource) and block.mime_type == FILE_PART and self.first:
            self._take_file_part(section, block)
        elif self.role is None and self.system is not None:
            self._misplaced(
                section, f"a resource cannot follow `{SYSTEM}`", f"write `{USER}` above"
            )
        elif self.part is not None:
            self._add_problem(section, "nothing can follow the part that ends a message")
        elif isinstance(block, EmbeddedResource) and block.mime_type == MESSAGE_PART:
            self._take_message_part(section, block)
        else:
            self.role = self.role or "user"
            self.content.append(block)

    def _take_message_part(self, section: Section, block: EmbeddedResource) -> None:
        self.role = self.role or "user"
        self.part_place = (section.start, section.start + len(RESOURCE))
        self.part = self._object_in(block)

    def _take_file_part(self, section: Section, block: EmbeddedResource) -> None:
        self.part_place = (section.start, section.start + len(RESOURCE))
        node = Node(self._object_in(block), (), [])
        self.system = node.optional_string("system")
        extra = node.field("extra")
        if extra is not None:
            self.extra = node.child("extra", extra).fields() or self.extra
        self._note_inside(node)

    def _object_in(self, block: EmbeddedResource) -> dict[str, JsonValue]:
        try:
            value = parse_json(block.text or "")
        except JsonTextError as error:
            message = f"the text of this part is {error.faults[0].message}"
            self.problems.append(Problem(INVALID_RESOURCE_SECTION, message, *self.part_place))
            return {}
        if not isinstance(value, dict):
            message = "the text of this part must be a JSON object"
            self.problems.append(Problem(INVALID_RESOURCE_SECTION, message, *self.part_place))
            return {}
        return value

    def _note_inside(self, node: Node) -> None:
        """Note problems of JSON that is inside a string, at the section they are in."""
        self.problems += [
            Problem(INVALID_RESOURCE_SECTION, f"in this part, {problem.message}", *self.part_place)
            for problem in node.problems
        ]

    def _resource(self, section: Section) -> Content | None:
        raw = section.text_of(self.source)
        body = raw.strip()
        if not body:
            self._add_problem(section, f"there is nothing under `{RESOURCE}`")
            return None
        start = section.body + raw.index(body)
        if body.startswith("{"):
            return self._parsed(body, start)
        if "\n" in body:
            message = f"what follows `{RESOURCE}` is neither JSON nor one path"
            problem = Problem(INVALID_RESOURCE_SECTION, message, start, start + 1, _RESOURCE_HINT)
            self.problems.append(problem)
            return None
        return self._attached(body, start)

    def _attached(self, name: str, start: int) -> Content | None:
        try:
            if self.attach is None:
                raise HistoryError(f"`{name}` cannot be read without a directory to look in")
            return self.attach(name)
        except HistoryError as error:
            self.problems.append(
                Problem(
                    INVALID_RESOURCE_SECTION, error.message, start, start + len(name), error.hint
                )
            )
            return None

    def _parsed(self, body: str, start: int) -> Content | None:
        try:
            value = parse_json(body)
        except JsonTextError as error:
            self.problems += [Problem.of_fault(fault, start) for fault in error.faults]
            return None
        node = Node(value, (), [])
        bare = node.field("type") is None and node.field("resource") is None
        block = read_resource(node) if bare else read_content(node)
        self.problems += located(node.problems, body, start)
        return block

    def _misplaced(self, section: Section, message: str, hint: str) -> None:
        end = section.start + max(1, len(section.delimiter))
        self.problems.append(Problem(MISPLACED_SECTION, message, section.start, end, hint))

    def _add_problem(self, section: Section, message: str) -> None:
        end = section.start + len(section.delimiter)
        problem = Problem(INVALID_RESOURCE_SECTION, message, section.start, end, _RESOURCE_HINT)
        self.problems.append(problem)
