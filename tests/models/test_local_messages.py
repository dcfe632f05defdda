from __future__ import annotations

import json
from typing import Any

import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.content import EmbeddedResource, ImageContent, TextContent
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.local_answer import Answer, Chunk
from fast_agent.models.local_engine import TemplateAbilities
from fast_agent.models.local_messages import chat_messages, chat_tools
from fast_agent.models.model import TextDelta, ThinkingDelta, ToolSpec

FULL = TemplateAbilities(tools=True, tool_calls=True, system=True)
PLAIN = TemplateAbilities(tools=False, tool_calls=False, system=True)
BARE = TemplateAbilities(tools=False, tool_calls=False, system=False)
ADD = ToolSpec("add", "Add", {"type": "object", "properties": {"a": {"type": "integer"}}})
TURN = [
    Message.user("add one"),
    Message("assistant", (TextContent("So:"),), (ToolCall("c1", "add", {"a": 1}),)),
    Message("user", tool_results=(ToolResult("c1", (TextContent("boom"),), is_error=True),)),
]


def test_a_template_that_knows_tools_gets_them_as_they_are() -> None:
    chat = chat_messages("be kind", TURN, [ADD], FULL)
    assert [turn["role"] for turn in chat] == ["system", "user", "assistant", "tool"]
    assert chat[0]["content"] == "be kind"
    [call] = chat[2]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"a": 1}
    assert chat[3] == {"role": "tool", "tool_call_id": "c1", "content": "error: boom"}
    assert chat_tools([ADD])[0]["function"]["parameters"] == ADD.input_schema


def test_a_template_that_does_not_gets_them_as_text() -> None:
    chat = chat_messages("be kind", TURN, [ADD], PLAIN)
    assert [turn["role"] for turn in chat] == ["system", "user", "assistant", "user"]
    assert chat[0]["content"].startswith("be kind\n\n")
    assert '"name": "add"' in chat[0]["content"]
    assert chat[2]["content"] == (
        'So:\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    )
    assert chat[3]["content"] == "<tool_response>\nerror: boom\n</tool_response>"


def test_a_template_without_a_system_role_gets_the_prompt_in_the_first_question() -> None:
    chat = chat_messages("be kind", [Message.user("hi"), Message.user("there")], [], BARE)
    assert chat == [{"role": "user", "content": "be kind\n\nhi\n\nthere"}]


def test_media_are_named_and_not_shown() -> None:
    content = (ImageContent("AAAA", "image/png"), EmbeddedResource("file:///a", text="A"))
    [turn] = chat_messages("", [Message("user", content)], [], FULL)
    assert turn["content"] == (
        "[image/png, which this model cannot read]\n[resource file:///a]\nA\n[end of resource]"
    )


def said(finish: str | None = None, **delta: Any) -> Chunk:
    return {"choices": [{"delta": delta, "finish_reason": finish}]}  # type: ignore[typeddict-item]


def test_native_calls_and_thoughts_are_put_together() -> None:
    answer = Answer(frozenset({"add"}), lambda: "new")
    answer.add(said(reasoning_content="hm"))
    answer.add(said(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "add"}}]))
    answer.add(said(tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]))
    answer.add(said(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]))
    answer.add(said(tool_calls=[{"index": 1, "function": {"name": "add", "arguments": "{"}}]))
    answer.add(said("tool_calls"))
    answer.finish()
    message = answer.response().message
    assert message.tool_calls == (
        ToolCall("c1", "add", {"a": 1}),
        ToolCall("new", "add", {"INVALID_JSON": "{"}),
    )
    assert message.channels["reasoning"] == (TextContent("hm"),)
    assert message.stop_reason == "toolUse"
    assert answer.take_deltas() == [ThinkingDelta("hm")]


def test_text_that_might_be_a_call_is_held_back_until_the_end() -> None:
    answer = Answer(frozenset({"add"}), lambda: "new")
    answer.add(said(content="1 "))
    answer.add(said(content="<"))
    answer.add(said(content=" 2"))
    assert answer.take_deltas() == [TextDelta("1 ")]
    answer.add(said("stop"))
    answer.finish()
    assert answer.take_deltas() == [TextDelta("< 2")]
    assert answer.response().message.text == "1 < 2"


def test_an_answer_without_an_end_is_an_error() -> None:
    answer = Answer(frozenset(), lambda: "new")
    answer.add(said(content="half"))
    with pytest.raises(ModelError, match="broke off"):
        answer.finish()
