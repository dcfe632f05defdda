"""The adapter against loopback servers that speak the Anthropic and the Responses API."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.models.conftest import AnthropicWire as Wired
from tests.models.conftest import OpenAIWire, Reply

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError
from fast_agent.messages.message import ImageContent, Message, TextContent, ToolCall, ToolResult
from fast_agent.models.check import Endpoint
from fast_agent.models.model import Delta, ModelRequest, OutputSchema, TextDelta, ToolSpec, Usage
from fast_agent.models.providers.provider import ProviderModel

if TYPE_CHECKING:
    from tests.models.conftest import StartWire, Wire

pytestmark = pytest.mark.anyio

ADD = ToolSpec("add", "Add", {"type": "object", "properties": {"a": {"type": "integer"}}})
ANSWER = OutputSchema(
    "Answer", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
)
LIMIT = RequestParams(max_tokens=100)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
TEXT = {"type": "text", "text": "okay"}
CALL = {"type": "tool_use", "id": "tu1", "name": "add", "input": {"a": 1}}
PNG = "iVBORw0KGgo="


def model_of(
    wire: Wire, provider: str = "anthropic", name: str = "claude-sonnet-4-6", **options: Any
) -> ProviderModel:
    async def sleep(seconds: float) -> None:
        assert seconds >= 0

    endpoint = Endpoint(provider=provider, model=name, api_key="k", base_url=wire.url)
    return ProviderModel(endpoint, sleep=sleep, jitter=lambda: 0.0, **options)


async def turn(
    start_wire: StartWire, first: Reply, *, provider: str = "anthropic", change: bool = False
) -> tuple[Message, dict[str, Any]]:
    """Ask, answer the tool call, and return the message and the second request's body."""
    wire = start_wire(first, Wired.answer(TEXT))
    model = model_of(wire, effort="high")
    question = Message.user("go")
    message = (await model.request(ModelRequest("", [question], [ADD], LIMIT))).message
    sent = replace(message, content=(TextContent("changed"),)) if change else message
    if provider != "anthropic" and isinstance(sent.native, dict):
        sent = replace(sent, native={**sent.native, "provider": provider})
    result = ToolResult("tu1", (TextContent("boom"), ImageContent(PNG, "image/png")), is_error=True)
    history = [question, sent, Message("user", tool_results=(result,))]
    await model.request(ModelRequest("", history, [ADD], LIMIT))
    await model.aclose()
    return message, wire.seen[1].body


@pytest.mark.spec("MODEL-14")
async def test_thinking_goes_back_with_its_signature(start_wire: StartWire) -> None:
    message, body = await turn(start_wire, Wired.answer(THOUGHT, TEXT, CALL, stop="tool_use"))
    assert message.channels["reasoning"] == (TextContent("hm"),)
    assert message.tool_calls == (ToolCall("tu1", "add", {"a": 1}),)
    assert message.text == "okay"
    assistant = body["messages"][1]
    assert assistant["role"] == "assistant"
    kept = [
        {key: part[key] for key in part if key != "cache_control"} for part in assistant["content"]
    ]
    assert kept == [THOUGHT, TEXT, CALL]


async def test_streamed_thinking_goes_back_with_its_signature(start_wire: StartWire) -> None:
    wire = start_wire(Wired.stream(THOUGHT, TEXT, CALL, stop="tool_use"), Wired.answer(TEXT))
    model = model_of(wire)
    deltas: list[Delta] = []
    question = Message.user("go")
    response = await model.request(ModelRequest("", [question], [ADD], LIMIT), deltas.append)
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == "okay"
    result = Message("user", tool_results=(ToolResult("tu1", (TextContent("1"),)),))
    await model.request(ModelRequest("", [question, response.message, result], [ADD], LIMIT))
    await model.aclose()
    assert THOUGHT in wire.seen[1].body["messages"][1]["content"]


async def test_a_native_form_survives_json(start_wire: StartWire) -> None:
    wire = start_wire(Wired.answer(THOUGHT, TEXT), Wired.answer(TEXT))
    model = model_of(wire)
    question = Message.user("go")
    message = (await model.request(ModelRequest("", [question], params=LIMIT))).message
    read = replace(message, native=json.loads(json.dumps(message.native)))
    again = ModelRequest("", [question, read, Message.user("more")], params=LIMIT)
    await model.request(again)
    await model.aclose()
    assert THOUGHT in wire.seen[1].body["messages"][1]["content"]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"change": True}, id="changed"),
        pytest.param({"provider": "google"}, id="other"),
    ],
)
async def test_a_changed_message_or_one_of_another_provider_is_rebuilt(
    start_wire: StartWire, how: dict[str, Any]
) -> None:
    answer = Wired.answer(THOUGHT, TEXT, CALL, stop="tool_use")
    _, body = await turn(start_wire, answer, **how)
    parts = body["messages"][1]["content"]
    assert [part["type"] for part in parts] == ["text", "tool_use"]
    assert parts[0]["text"] == ("changed" if how.get("change") else "okay")


async def test_results_carry_errors_and_images(start_wire: StartWire) -> None:
    _, body = await turn(start_wire, Wired.answer(CALL, stop="tool_use"))
    [result] = body["messages"][2]["content"]
    assert result["tool_use_id"] == "tu1"
    assert result["is_error"] is True
    kinds = [part["type"] for part in result["content"]]
    assert kinds == ["text", "image"]


async def test_the_system_prompt_is_the_only_instruction(start_wire: StartWire) -> None:
    wire = start_wire(Wired.answer(TEXT))
    model = model_of(wire, effort="low")
    response = await model.request(ModelRequest("be kind", [Message.user("x")], params=LIMIT))
    await model.aclose()
    [block] = wire.seen[0].body["system"]
    assert block["text"] == "be kind"
    assert "Bearer k" in wire.seen[0].headers.values()
    assert wire.seen[0].body["output_config"]["effort"] == "low"
    assert response.usage == Usage(20, 5, cache_read_tokens=7, cache_write_tokens=3, requests=1)


async def test_neighbours_of_one_role_are_joined(start_wire: StartWire) -> None:
    wire = start_wire(Wired.answer(TEXT))
    model = model_of(wire)
    messages = [Message.user("a"), Message("assistant"), Message.user("b")]
    await model.request(ModelRequest("", messages, params=LIMIT))
    await model.aclose()
    [only] = wire.seen[0].body["messages"]
    assert [part["text"] for part in only["content"]] == ["a", "b"]


async def test_a_structured_answer_is_json(start_wire: StartWire) -> None:
    wire = start_wire(Wired.answer({"type": "text", "text": '{"x": 1}'}))
    model = model_of(wire)
    request = ModelRequest("", [Message.user("x")], params=LIMIT, output_schema=ANSWER)
    assert json.loads((await model.request(request)).message.text) == {"x": 1}
    await model.aclose()
    assert wire.seen[0].body["output_config"]["format"]["type"] == "json_schema"


@pytest.mark.parametrize("stream", [False, True])
async def test_an_older_model_answers_through_a_tool(start_wire: StartWire, stream: bool) -> None:
    call = {"type": "tool_use", "id": "tu1", "name": "final_answer", "input": {"x": 1}}
    parts = ({"type": "text", "text": "Here:"}, call)
    reply = (
        Wired.stream(*parts, stop="tool_use") if stream else Wired.answer(*parts, stop="tool_use")
    )
    wire = start_wire(reply)
    model = model_of(wire, name="claude-older")
    deltas: list[Delta] = []
    request = ModelRequest("", [Message.user("x")], [ADD], LIMIT, ANSWER)
    message = (await model.request(request, deltas.append if stream else None)).message
    await model.aclose()
    assert json.loads(message.text) == {"x": 1}
    assert message.tool_calls == ()
    assert message.stop_reason == "endTurn"
    assert [tool["name"] for tool in wire.seen[0].body["tools"]] == ["add", "final_answer"]
    if stream:
        assert "".join(delta.text for delta in deltas) == message.text


async def test_a_stream_without_its_end_is_an_error(start_wire: StartWire) -> None:
    model = model_of(start_wire(Wired.stream(THOUGHT, TEXT, stop=None)))
    deltas: list[Delta] = []
    with pytest.raises(ModelError, match="ended before it was complete"):
        await model.request(ModelRequest("", [Message.user("x")], params=LIMIT), deltas.append)
    await model.aclose()
    assert deltas


async def test_an_overloaded_provider_is_asked_again(start_wire: StartWire) -> None:
    busy = OpenAIWire.reply({"type": "error", "error": {"type": "overloaded_error"}}, 529)
    wire = start_wire(busy, busy, Wired.answer(TEXT))
    model = model_of(wire)
    response = await model.request(ModelRequest("", [Message.user("x")], params=LIMIT))
    await model.aclose()
    assert response.message.text == "okay"
    assert len(wire.seen) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_a_paused_answer_is_continued(start_wire: StartWire, stream: bool) -> None:
    give = Wired.stream if stream else Wired.answer
    found = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    wire = start_wire(give(TEXT, found, stop="pause_turn"), give(TEXT))
    model = model_of(wire)
    deltas: list[Delta] = []
    params = replace(LIMIT, web_search=True)
    request = ModelRequest("", [Message.user("go")], params=params)
    response = await model.request(request, deltas.append if stream else None)
    await model.aclose()
    assert (response.message.text, response.message.stop_reason) == ("okay\nokay", "endTurn")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (40, 10)
    question, paused = wire.seen[1].body["messages"]
    assert (question["role"], paused["role"]) == ("user", "assistant")
    assert [part["type"] for part in paused["content"]] == ["text", "server_tool_use"]
    if stream:
        assert "".join(delta.text for delta in deltas) == "okayokay"


async def test_an_answer_that_never_ends_ends_where_it_pauses(start_wire: StartWire) -> None:
    wire = start_wire(*[Wired.answer(TEXT, stop="pause_turn")] * 12)
    model = model_of(wire)
    response = await model.request(ModelRequest("", [Message.user("go")], params=LIMIT))
    await model.aclose()
    assert response.message.stop_reason == "pause_turn"
    assert len(wire.seen) == 11


async def test_a_stream_that_cannot_be_read_is_an_error_of_the_model(
    start_wire: StartWire,
) -> None:
    reply = Wired.stream(TEXT)
    event = json.loads(reply.chunks[0].split(b"data: ")[1])
    event["message"]["usage"] = None
    first = f"event: message_start\ndata: {json.dumps(event)}\n\n".encode()
    model = model_of(start_wire(replace(reply, chunks=[first, *reply.chunks[1:]])))
    deltas: list[Delta] = []
    with pytest.raises(ModelError, match="gave an answer that cannot be read: AttributeError"):
        await model.request(ModelRequest("", [Message.user("x")], params=LIMIT), deltas.append)
    await model.aclose()


async def test_a_key_that_is_no_secret_is_not_hidden(start_wire: StartWire) -> None:
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": "took too long"}}
    model = model_of(start_wire(OpenAIWire.reply(said, 400)))
    with pytest.raises(ModelError, match="took too long"):
        await model.request(ModelRequest("", [Message.user("x")], params=LIMIT))
    await model.aclose()


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", "endTurn"),
        ("max_tokens", "maxTokens"),
        ("stop_sequence", "stopSequence"),
        ("refusal", "refusal"),
    ],
)
async def test_stop_reasons(start_wire: StartWire, stop: str, reason: str) -> None:
    model = model_of(start_wire(Wired.answer(TEXT, stop=stop)))
    response = await model.request(ModelRequest("", [Message.user("x")], params=LIMIT))
    await model.aclose()
    assert response.message.stop_reason == reason


async def test_a_sound_is_refused_by_name(start_wire: StartWire) -> None:
    from fast_agent.messages.message import AudioContent

    wire = start_wire()
    model = model_of(wire)
    with pytest.raises(ModelError, match=r"cannot process this request: .*audio/wav"):
        await model.request(
            ModelRequest("", [Message("user", (AudioContent("AAAA", "audio/wav"),))])
        )
    await model.aclose()
    assert wire.seen == []


def response_of(*output: dict[str, Any]) -> Reply:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    return OpenAIWire.reply(body)


async def test_openai_reasoning_goes_back_as_it_came(start_wire: StartWire) -> None:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "c2VjcmV0",
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "add",
        "arguments": '{"a":1}',
        "status": "completed",
    }
    said: dict[str, Any] = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    }
    wire = start_wire(response_of(reasoning, call), response_of(said))
    model = model_of(wire, "openai", "gpt-5", effort="low")
    question = Message.user("go")
    first = (await model.request(ModelRequest("be kind", [question], [ADD]))).message
    assert first.tool_calls == (ToolCall("call_1", "add", {"a": 1}),)
    assert first.stop_reason == "toolUse"
    result = Message("user", tool_results=(ToolResult("call_1", (TextContent("1"),)),))
    last = await model.request(ModelRequest("be kind", [question, first, result], [ADD]))
    await model.aclose()
    assert last.message.text == "done"
    assert wire.seen[0].path == "/responses"
    assert wire.seen[0].body["reasoning"]["effort"] == "low"
    sent = wire.seen[1].body["input"]
    assert [item["encrypted_content"] for item in sent if item.get("type") == "reasoning"] == [
        "c2VjcmV0"
    ]
    [output] = [item for item in sent if item.get("type") == "function_call_output"]
    assert output["call_id"] == "call_1"
