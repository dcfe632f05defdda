"""Agents under the names that the official scenarios call, each of an ordinary card.

They play short histories, so that they do what a scenario waits for: one asks its person, one asks
the client's model through a server of its own, one fails.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.messages.file import HistoryDocument, write_history
from fast_agent.messages.message import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.text.json_value import JsonObject, JsonValue

HERE = Path(__file__).parent
CARDS = HERE / "cards"

Scene: TypeAlias = "tuple[Sequence[ToolCall | str], JsonObject]"
"""What an agent does when it is called, calls before words, and the fields of its card besides."""


def write_scenes(folder: Path) -> None:
    """Write the cards of all scenes, and what they play, into an empty folder."""
    for card in CARDS.iterdir():
        shutil.copy(card, folder)
    for name, (answers, more) in SCENES.items():
        fields: dict[str, JsonValue] = {
            "description": "A scene.",
            "model": "playback",
            "messages": f"{name}.json",
            "tool_input_schema": form(),
            **more,
        }
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in fields.items()]
        (folder / f"{name}.md").write_text(f"---\n{''.join(lines)}---\nAct.\n", "utf-8")
        write_history(folder / f"{name}.json", HistoryDocument(None, tuple(_played(answers))))
    failing = {"agents": {"test_error_handling": [{"fail": "it is meant to", "repeat": 40}]}}
    (folder / "failing.json").write_text(json.dumps(failing), "utf-8")


def _played(answers: Sequence[ToolCall | str]) -> list[Message]:
    said = [Message.user("Begin.")]
    for one in answers:
        if isinstance(one, str):
            said.append(Message.assistant(one))
        else:
            said.append(Message("assistant", tool_calls=(one,)))
            said.append(Message("user", tool_results=(ToolResult(one.id),)))
    return said


def form(*required: str, **properties: JsonObject) -> JsonObject:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, "required": list(required)}


def asking(*schemas: JsonObject) -> Scene:
    """Return an agent that asks its person with some forms in turn, and says that it did."""
    calls = [
        ToolCall(f"call-{number}", "request_human_input", {"message": "Who?", "schema": schema})
        for number, schema in enumerate(schemas)
    ]
    return (*calls, "You answered."), {"human_input": True}


def saying(**fields: JsonValue) -> Scene:
    """Return an agent that says a sentence."""
    return ("This is a simple text response for testing.",), fields


def choosing(*values: str, **more: JsonValue) -> JsonObject:
    return {"type": "string", "enum": list(values), **more}


def titled(key: str, word: str) -> JsonObject:
    return {key: [{"const": f"value{n}", "title": f"{n} {word}"} for n in (1, 2, 3)]}


WORD: JsonObject = {"type": "string"}
NAME = form("name", name=WORD)
OK = form("ok", ok={"type": "boolean"})
ENUMS = form(
    untitledSingle=choosing("option1", "option2", "option3"),
    titledSingle={"type": "string", **titled("oneOf", "Option")},
    legacyEnum=choosing("opt1", "opt2", "opt3", enumNames=["Option 1", "Option 2", "Option 3"]),
    untitledMulti={"type": "array", "items": choosing("option1", "option2", "option3")},
    titledMulti={"type": "array", "items": titled("anyOf", "Choice")},
)
DEFAULTS = form(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status=choosing("active", "inactive", "pending", default="active"),
    verified={"type": "boolean", "default": True},
)
NEW_SCHEMA: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", **form(street=WORD, city=WORD)}},
    "properties": {
        "name": WORD,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": choosing("phone", "email"),
        "phone": WORD,
        "email": WORD,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SERVER = shlex.join((sys.executable, str(HERE.parent / "mcp/servers/everything.py"), "stdio"))

SCENES: dict[str, Scene] = {
    "test_simple_text": saying(),
    "test_logging_tool": saying(),
    "test_error_handling": saying(model="scripted?file=failing.json"),
    "test_elicitation": asking(form("username", username=WORD)),
    "test_streaming_elicitation": asking(NAME),
    "test_elicitation_sep1034_defaults": asking(DEFAULTS),
    "test_elicitation_sep1330_enums": asking(ENUMS),
    "test_input_required_result_elicitation": asking(NAME),
    "test_input_required_result_request_state": asking(OK),
    "test_input_required_result_tampered_state": asking(OK),
    "test_input_required_result_multi_round": asking(NAME, form("color", color=WORD)),
    "test_sampling": (
        (ToolCall("call-0", "all__consult", {"question": "Why?"}), "It answered."),
        {"mcp_connect": [{"target": SERVER, "name": "all"}]},
    ),
    "json_schema_2020_12_tool": saying(tool_input_schema=NEW_SCHEMA),
}
