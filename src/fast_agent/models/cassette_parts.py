"""The pieces requests are made of: each is written once, and named by its digest after that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from fast_agent.messages.json_message import message_to_wire
from fast_agent.text.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.cards.request_params import RequestParams
    from fast_agent.messages.message import Message
    from fast_agent.models.model import ModelRequest, ToolSpec
    from fast_agent.text.json_value import JsonValue

_DIGITS: Final = 20
_WORKSPACE: Final = "<<workspace>>"
_OF_THE_LOOP: Final = frozenset(
    {
        "max_iterations",
        "parallel_tool_calls",
        "retries",
        "retry_seconds",
        "timeout_seconds",
        "tool_result_bytes",
        "usage_limits",
    }
)


class Veil:
    """Keeps secrets off a tape, and makes it the same in every workspace.

    Args:
        secrets: Texts that must not be written.
        workspace: The directory of the program, absolute; empty for none.
    """

    def __init__(self, secrets: Iterable[str] = (), workspace: str = "") -> None:
        self._redact = Redactor(secrets).redact
        self._workspace = workspace if workspace.count("/") > 1 else ""
        self._path = re.compile(re.escape(self._workspace) + r"(?![\w-]|\.\w)")

    def hide(self, text: str) -> str:
        """Put marks in the place of secrets and of the workspace."""
        text = self._redact(text)
        if self._workspace and self._workspace in text:
            text = self._path.sub(_WORKSPACE, text)
        return text

    def veiled(self, value: JsonValue) -> JsonValue:
        """Copy a value with every text in it hidden."""
        return _mapped(value, self.hide)

    def lifted(self, value: JsonValue) -> JsonValue:
        """Copy a value with this workspace where the mark for one is."""
        return _mapped(value, self._show) if self._workspace else value

    def _show(self, text: str) -> str:
        return text.replace(_WORKSPACE, self._workspace) if _WORKSPACE in text else text


class Parts:
    """Names pieces by their digest.

    Args:
        veil: What is hidden in them.
        keep: Called once with each new piece and its digest.
    """

    def __init__(self, veil: Veil, keep: Callable[[str, JsonValue], None]) -> None:
        self.veil = veil
        self._keep = keep
        self._known: set[str] = set()
        # Values that are kept alive here cannot lend their id to another.
        self._messages: dict[int, tuple[Message, str]] = {}
        self._tools: dict[int, tuple[Sequence[ToolSpec], str]] = {}
        self._lines: dict[tuple[str, str], str] = {}

    def digest(self, value: JsonValue) -> str:
        """Name a piece; the same for equal ones."""
        veiled = self.veil.veiled(value)
        text = json.dumps(veiled, sort_keys=True, separators=(",", ":"))
        digest = sha256(text.encode()).hexdigest()[:_DIGITS]
        if digest not in self._known:
            self._known.add(digest)
            self._keep(digest, veiled)
        return digest

    def digest_of_message(self, message: Message) -> str:
        """Name a message."""
        found = self._messages.get(id(message))
        if found is None:
            found = self._messages[id(message)] = message, self.digest(message_to_wire(message))
        return found[1]

    def digest_of_conversation(self, messages: Sequence[Message]) -> str:
        """Name a conversation: a new message costs one piece, however long the conversation."""
        line = ""
        for message in messages:
            last = self.digest_of_message(message)
            longer = self._lines.get((line, last))
            if longer is None:
                longer = self.digest({"after": line, "message": last})
                self._lines[(line, last)] = longer
            line = longer
        return line

    def question(self, model: str, request: ModelRequest) -> dict[str, JsonValue]:
        """Write a model request as the digests of its parts; what is not set is left out."""
        asked: dict[str, JsonValue] = {
            "model": model,
            "system": self.digest(request.system),
            "tools": self._digest_of_tools(request.tools),
            "messages": self.digest_of_conversation(request.messages),
        }
        params = _told(request.params)
        if params:
            asked["params"] = params
        shape = request.output_schema
        if shape is not None:
            asked["output"] = self.digest({"name": shape.name, "schema": shape.schema})
        return asked

    def _digest_of_tools(self, tools: Sequence[ToolSpec]) -> str:
        found = self._tools.get(id(tools))
        if found is None:
            found = tools, self.digest([tool_to_json(tool) for tool in tools])
            self._tools[id(tools)] = found
        return found[1]


def tool_to_json(tool: ToolSpec) -> dict[str, JsonValue]:
    """Write how the model sees a tool."""
    value: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
    if tool.output_schema is not None:
        value["output_schema"] = tool.output_schema
    if tool.title is not None:
        value["title"] = tool.title
    return value


def spread(asked: JsonValue, parts: Mapping[str, JsonValue]) -> JsonValue:
    """Put the pieces of a model request back in the place of their digests.

    Args:
        asked: What `Parts.question` gave; anything else is given back as it is.
        parts: The pieces by digest. One that is missing stays a digest.
    """
    if not isinstance(asked, Mapping) or "messages" not in asked:
        return asked
    value = {
        key: parts.get(digest, digest) if isinstance(digest, str) and key != "model" else digest
        for key, digest in asked.items()
    }
    line = asked["messages"]
    messages: list[JsonValue] = []
    while isinstance(line, str) and line:
        joint = parts.get(line)
        if not isinstance(joint, Mapping):
            messages.append(line)
            break
        last = joint.get("message")
        messages.append(parts.get(last, last) if isinstance(last, str) else last)
        line = joint.get("after")
    value["messages"] = messages[::-1]
    return value


def _told(params: RequestParams) -> dict[str, JsonValue]:
    """Give the parameters a model is told of; those of the loop itself are not."""
    return {
        item.name: value
        for item in fields(params)
        if item.name not in _OF_THE_LOOP and (value := getattr(params, item.name)) is not None
    }


def _mapped(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_mapped(inner, change) for inner in value]
    return value
