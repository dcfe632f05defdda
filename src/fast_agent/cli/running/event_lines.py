"""Events of a run as JSON lines, for `fast-agent go --format events`, and their JSON Schema."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from fast_agent.agents import events
from fast_agent.cli.output import standard_output
from fast_agent.messages.json_message import message_to_wire, result_to_wire
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import ContextUse, Usage

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from anyio import CancelScope

    from fast_agent.agents.events import Event
    from fast_agent.text.json_value import JsonObject, JsonValue

VERSION: Final = 1
"""The version of the format; it grows when a reader of the lines would misread them."""

EVENT_NAMES: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        events.TurnStarted: "turn.started",
        events.Steered: "turn.steered",
        events.ModelRequested: "model.requested",
        events.TextStreamed: "text",
        events.ThinkingStreamed: "thinking",
        events.ModelAnswered: "model.answered",
        events.ToolStarted: "tool.started",
        events.ToolProgressed: "tool.progressed",
        events.ToolFinished: "tool.finished",
        events.ChildStarted: "child.started",
        events.ChildFinished: "child.finished",
        events.WorkflowAdvanced: "workflow",
        events.Warned: "warned",
        events.TurnFinished: "turn.finished",
    }
)
"""The name of each event in the field `event`."""

_FIELD_NAMES: Final[Mapping[type[Event], tuple[str, ...]]] = {
    kind: tuple(one.name for one in fields(kind) if one.name != "origin") for kind in EVENT_NAMES
}


class EventLines:
    """Writes one JSON object a line, each flushed, to standard output as it is when this is made.

    Args:
        text: Whether pieces of text are written; their whole is in `model.answered`.
    """

    def __init__(self, *, text: bool) -> None:
        self._out = standard_output()
        self._text = text
        self._scope: CancelScope | None = None
        self._number = 0
        self._error: OSError | None = None

    @contextmanager
    def until_closed(self) -> Generator[None]:
        """Cancel the block when the reader of the lines closes its end.

        Raises:
            OSError: The reader closed its end.
        """
        from anyio import CancelScope

        with CancelScope() as self._scope:
            yield
        if self._error is not None:
            raise self._error

    def listener(self, event: Event) -> None:
        """Write an event."""
        if not self._text and isinstance(event, events.TextStreamed):
            return
        kind = type(event)
        line: dict[str, JsonValue] = {
            "agent": event.origin.agent,
            "turn": event.origin.turn_id,
            "parent": event.origin.parent_call_id,
        }
        for name in _FIELD_NAMES[kind]:
            line[name] = _to_wire(getattr(event, name))
        self.write(EVENT_NAMES[kind], line)

    def write(self, event: str, facts: JsonObject) -> None:
        """Write a line.

        Args:
            event: Its name.
            facts: Its fields other than version, number, time and name.
        """
        if self._error is not None:
            return
        self._number += 1
        line = {
            "v": VERSION,
            "seq": self._number,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            **facts,
        }
        try:
            self._out.line(json.dumps(line, ensure_ascii=False))
        except OSError as error:
            self._error = error
            if self._scope is not None:
                self._scope.cancel()


def _to_wire(value: object) -> JsonValue:
    match value:
        case Message():
            return message_to_wire(value)
        case ToolCall():
            return {"id": value.id, "name": value.name, "arguments": dict(value.arguments)}
        case ToolResult():
            wire = cast("Mapping[str, JsonObject]", result_to_wire(value))
            return {"id": value.id, **wire[value.id]}
        case Usage():
            return {
                **{name: getattr(value, name) for name in _USAGE_FIELDS},
                "cost": value.cost,
            }
        case ContextUse():
            return value.to_json()
        case _ if is_dataclass(value):
            return {one.name: getattr(value, one.name) for one in fields(value)}
        case _:
            return cast("JsonValue", value)


_STRING: Final[JsonObject] = {"type": "string"}
_STRING_OR_NULL: Final[JsonObject] = {"type": ["string", "null"]}
_COUNT: Final[JsonObject] = {"type": "integer", "minimum": 0}
_OBJECT: Final[JsonObject] = {"type": "object"}
_USAGE_FIELDS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "requests",
    "tool_calls",
)
_USAGE: Final[JsonObject] = {
    "type": "object",
    "properties": {**dict.fromkeys(_USAGE_FIELDS, _COUNT), "cost": {"type": ["number", "null"]}},
    "required": [*_USAGE_FIELDS, "cost"],
}
_CONTEXT: Final[JsonObject] = {
    "type": ["object", "null"],
    "properties": {
        "used": _COUNT,
        "window": {"type": ["integer", "null"]},
        "share": {"type": ["number", "null"]},
    },
    "required": ["used", "window", "share"],
}
_MESSAGE: Final[JsonObject] = {
    "type": "object",
    "properties": {"role": {"enum": ["user", "assistant"]}},
    "required": ["role"],
}
_NUMBER_OR_NULL: Final[JsonObject] = {"type": ["number", "null"]}
_FIELD_SCHEMAS: Final[Mapping[str, JsonObject]] = {
    "message": _MESSAGE,
    "model": _STRING,
    "iteration": _COUNT,
    "text": _STRING,
    "usage": _USAGE,
    "tree_usage": _USAGE,
    "context": _CONTEXT,
    "call": {
        "type": "object",
        "properties": {"id": _STRING, "name": _STRING, "arguments": _OBJECT},
        "required": ["id", "name", "arguments"],
    },
    "source": _STRING,
    "server_name": _STRING_OR_NULL,
    "call_id": _STRING,
    "progress": {"type": "number"},
    "total": _NUMBER_OR_NULL,
    "result": {
        "type": "object",
        "properties": {"id": _STRING, "content": {"type": "array"}, "isError": {"type": "boolean"}},
        "required": ["id", "content", "isError"],
    },
    "child": _STRING,
    "instance": _COUNT,
    "max_display_instances": _COUNT,
    "error": _STRING_OR_NULL,
    "kind": _STRING,
    "facts": _OBJECT,
    "stop_reason": _STRING,
}
_OTHER_SCHEMAS: Final[Mapping[tuple[str, str], JsonObject]] = {
    ("tool.progressed", "message"): _STRING_OR_NULL,
    ("warned", "message"): _STRING,
    ("turn.finished", "message"): {"anyOf": [_MESSAGE, {"type": "null"}]},
}
"""Fields that differ from those of their name in other events, by event and field."""


def events_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a line."""
    lines = [
        _line_schema(
            name,
            {
                "agent": _STRING,
                "turn": _STRING,
                "parent": _STRING_OR_NULL,
                **{
                    field: _OTHER_SCHEMAS.get((name, field), _FIELD_SCHEMAS[field])
                    for field in _FIELD_NAMES[kind]
                },
            },
        )
        for kind, name in EVENT_NAMES.items()
    ]
    opened = _line_schema("session.opened", {"session": _STRING})
    result = _line_schema(
        "result",
        {
            "agent": _STRING,
            "text": _STRING,
            "stop_reason": _STRING,
            "usage": {
                "type": "object",
                "properties": {
                    **dict.fromkeys((*_USAGE_FIELDS[:2], *_USAGE_FIELDS[4:]), _COUNT),
                    "cost": _NUMBER_OR_NULL,
                },
            },
            "context": _CONTEXT,
            "structured": {},
            "workflow": {"type": ["object", "null"]},
        },
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `fast-agent go --format events`",
        "oneOf": [opened, *lines, result],
    }


def _line_schema(name: str, properties: Mapping[str, JsonObject]) -> dict[str, Any]:
    every: dict[str, JsonObject] = {
        "v": {"const": VERSION},
        "seq": {"type": "integer", "minimum": 1},
        "time": {"type": "string", "format": "date-time"},
        "event": {"const": name},
        **properties,
    }
    return {
        "type": "object",
        "properties": every,
        "required": list(every),
        "additionalProperties": False,
    }
