from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_message import read_json_history, write_json_history
from fast_agent.messages.message import (
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
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from fast_agent.diagnostics.diagnostic import Diagnostic

FULL = """{
  "messages": [
    {
      "role": "assistant",
      "content": [
        {"type": "text", "text": "hi", "annotations": {"audience": ["user"]}, "_meta": {"a": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b", "_meta": {"c": 1}}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk=", "mimeType": "x/y"}},
        {"type": "hologram", "depth": 3}
      ],
      "tool_calls": {
        "call_2": {"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
        "call_1": {
          "method": "tools/call",
          "params": {"name": "now", "arguments": null, "_meta": {"progressToken": 7}},
          "later": true
        }
      },
      "tool_results": null,
      "channels": {"reasoning": [{"type": "text", "text": "hmm"}]},
      "stop_reason": "toolUse",
      "phase": "commentary",
      "is_template": true,
      "timestamp": 1730000000.5,
      "fast-agent/native": {"kind": "response"},
      "x_unknown": [1, 2]
    },
    {
      "role": "user",
      "tool_results": {
        "call_2": {
          "content": [{"type": "text", "text": "3"}], "isError": false,
          "structuredContent": {"n": 3}
        },
        "call_1": {"content": [], "isError": true, "_meta": {"t": 1}}
      }
    }
  ],
  "model": "kept"
}"""


def read(text: str) -> HistoryDocument:
    return read_json_history(Source.of("h.json", text))


def problems(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(HistoryError) as caught:
        read(text)
    return caught.value.diagnostics


@pytest.mark.spec("CARD-51", "HIST-2")
def test_every_field_is_read() -> None:
    transcript = read(FULL)
    assert transcript == HistoryDocument(
        None,
        (
            Message(
                "assistant",
                (
                    TextContent("hi", {"annotations": {"audience": ["user"]}, "_meta": {"a": 1}}),
                    ImageContent("aGk=", "image/png"),
                    AudioContent("aGk=", "audio/wav"),
                    ResourceLink("file:///a", "a", extra={"title": "A", "size": 3}),
                    EmbeddedResource("file:///b", text="b", resource_extra={"_meta": {"c": 1}}),
                    EmbeddedResource("file:///c", "x/y", blob="aGk="),
                    OpaqueContent({"type": "hologram", "depth": 3}),
                ),
                tool_calls=(
                    ToolCall("call_2", "add", {"a": 1}),
                    ToolCall(
                        "call_1",
                        "now",
                        extra={"params": {"_meta": {"progressToken": 7}}, "later": True},
                    ),
                ),
                channels={"reasoning": (TextContent("hmm"),)},
                native={"kind": "response"},
                stop_reason="toolUse",
                phase="commentary",
                is_template=True,
                timestamp=1730000000.5,
                extra={"x_unknown": [1, 2]},
            ),
            Message(
                "user",
                tool_results=(
                    ToolResult("call_2", (TextContent("3"),), structured={"n": 3}),
                    ToolResult("call_1", (), is_error=True, extra={"_meta": {"t": 1}}),
                ),
            ),
        ),
        {"model": "kept"},
    )


@pytest.mark.spec("HIST-2")
def test_what_was_read_is_written_back() -> None:
    written = json.loads(write_json_history(read(FULL)))
    given = json.loads(FULL)
    assert written["model"] == "kept"
    for key in ("content", "channels", "x_unknown", "fast-agent/native", "timestamp", "phase"):
        assert written["messages"][0][key] == given["messages"][0][key]
    calls = written["messages"][0]["tool_calls"]
    assert list(calls) == ["call_2", "call_1"]
    assert calls["call_1"]["params"]["_meta"] == {"progressToken": 7}
    assert calls["call_1"]["later"] is True
    assert written["messages"][1]["tool_results"] == given["messages"][1]["tool_results"]


@pytest.mark.spec("HIST-3")
def test_the_older_form_is_read() -> None:
    transcript = read(
        '{"description": "d", "_meta": null, "messages": ['
        '{"role": "user", "content": {"type": "text", "text": "hi"}},'
        '{"role": "assistant", "content": {"type": "resource", "resource":'
        ' {"uri": "a:b", "text": "t"}}}]}'
    )
    assert transcript.messages == (
        Message("user", (TextContent("hi"),)),
        Message("assistant", (EmbeddedResource("a:b", text="t"),)),
    )
    assert transcript.extra == {"description": "d", "_meta": None}


@pytest.mark.spec("HIST-4")
def test_all_problems_are_shown_at_once_with_their_place() -> None:
    good = '    {"role": "user", "content": []},\n' * 6
    text = (
        '{\n  "messages": [\n' + good + '    {"role": "user", "content": "hello"},\n'
        '    {"role": "bot", "content": [{"type": "text"}, {"text": "x"}]},\n'
        '    "oops",\n'
        '    {"role": "assistant", "tool_calls": {"a": {"method": "x", "params": {}}},\n'
        '     "timestamp": true, "is_template": 1}\n  ]\n}'
    )
    found = problems(text)
    assert [item.message for item in found] == [
        "`messages[6].content` must be a list of content blocks, not a string",
        "`messages[7].role` must be `user` or `assistant`, not `bot`",
        "`messages[7].content[0]` has no `text`",
        "`messages[7].content[1]` has no `type`",
        "`messages[8]` must be an object, not `oops`",
        "`messages[9].tool_calls.a.method` must be `tools/call`, not `x`",
        "`messages[9].tool_calls.a.params` has no `name`",
        "`messages[9].timestamp` must be a string or a number, not true",
        "`messages[9].is_template` must be true or false, not a number",
    ]
    assert {item.code for item in found} == {"FA404"}
    role = found[1]
    assert role.span is not None
    assert (role.span.start.line, role.span.start.column) == (10, 14)
    assert (role.span.end.line, role.span.end.column) == (10, 19)
    assert role.source_line is not None
    assert role.source_line[13:18] == '"bot"'
    fix = found[0].fix
    assert fix is not None
    assert fix.replacement == '[{"type": "text", "text": "hello"}]'
    lines = text.split("\n")
    row = fix.span.start.line - 1
    start, end = fix.span.start.column - 1, fix.span.end.column - 1
    lines[row] = lines[row][:start] + fix.replacement + lines[row][end:]
    assert len(problems("\n".join(lines))) == len(found) - 1


@pytest.mark.parametrize(
    ("text", "code", "message", "line", "column"),
    [
        ('{"messages": [],}', "FA402", "not JSON: a comma with nothing after it", 1, 16),
        ('{"messages": [\n{"a" 1}]}', "FA402", "not JSON: expecting ':' delimiter", 2, 6),
        ('{"messages": [', "FA402", "not JSON: it ends before it is complete", 1, 15),
        ("", "FA402", "there is nothing where JSON is expected", 1, 1),
        ('{"messages": []} x', "FA402", "not JSON: extra data", 1, 18),
        ('{"messages": NaN}', "FA402", "`NaN` is not a number JSON can hold", 1, 14),
        ('{"messages": -Infinity}', "FA402", "`-Infinity` is not a number JSON can hold", 1, 14),
        ('{"messages": 1e999}', "FA402", "`1e999` is not a number JSON can hold", 1, 14),
        ('{"messages": %s}' % ("9" * 5000), "FA402", "the number has too many digits", 1, 14),
        (
            '{"messages": [],\n "messages": []}',
            "FA403",
            "the key `messages` is defined twice",
            2,
            2,
        ),
        ("[" * 100_000, "FA402", "nested too deeply", 1, 1),
        ("[]", "FA404", "the history must be an object, not a list", 1, 1),
        ("{}", "FA404", "the history has no `messages`", 1, 1),
        ('{"messages": {}}', "FA404", "`messages` must be a list, not an object", 1, 14),
    ],
)
def test_wrong_documents(text: str, code: str, message: str, line: int, column: int) -> None:
    (found,) = problems(text)
    assert (found.code, found.message) == (code, message)
    assert found.span is not None
    assert (found.span.start.line, found.span.start.column) == (line, column)


def test_several_duplicates_are_all_found_and_name_the_first() -> None:
    text = '{"messages": [{"role": "user", "role": "user", "x": {"y": 1,\n"y": NaN}}]}'
    twice, inner, number = problems(text)
    assert twice.message == "the key `role` is defined twice"
    assert twice.related[0].span is not None
    assert twice.related[0].span.start.column == 16
    assert inner.message == "the key `y` is defined twice"
    assert number.message == "`NaN` is not a number JSON can hold"


def test_keys_that_only_look_the_same_are_duplicates() -> None:
    (found,) = problems('{"messages": [], "\\u006dessages": []}')
    assert found.code == "FA403"


def test_a_system_message_is_pointed_to_its_field() -> None:
    (found,) = problems('{"messages": [{"role": "system", "content": []}]}')
    assert found.hint == "put the text into the field `system` next to `messages`"


def test_resources_need_text_or_blob() -> None:
    found = problems(
        '{"messages": [{"role": "user", "content": ['
        '{"type": "resource", "resource": {"uri": "a"}},'
        '{"type": "resource", "resource": {"uri": "a", "text": "x", "blob": "y"}},'
        '{"type": "resource"},'
        '{"type": "image", "data": "", "mime_type": "image/png"}]}]}'
    )
    assert [(item.message.split("` ", 1)[1], item.hint) for item in found] == [
        ("the resource has neither `text` nor `blob`", None),
        ("and `text` cannot both be there", None),
        ("must be an object, not null", None),
        ("has no `mimeType`", "write `mimeType`"),
    ]


def test_a_lone_surrogate_survives() -> None:
    text = write_json_history(HistoryDocument(messages=(Message.user("a\ud83d"),)))
    text.encode()
    assert read(text).messages[0].text == "a\ud83d"
