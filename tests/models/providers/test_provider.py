"""The adapter against a loopback server that speaks the OpenAI chat API."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.resources.chat.completions import completions
from tests.models.conftest import HELLO, KEY, ask_of, failure_of_request
from tests.models.conftest import OpenAIWire as Wired

from fast_agent.cards.agent_config import RequestParams
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
from fast_agent.models.model import (
    ModelRequest,
    OutputSchema,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
    Usage,
)
from fast_agent.models.providers import provider
from fast_agent.models.providers.provider import RetryPolicy

if TYPE_CHECKING:
    from tests.models.conftest import StartWire

    from fast_agent.config.settings import StatedFacts
    from fast_agent.models.check import Endpoint


pytestmark = pytest.mark.anyio


ADD = ToolSpec(
    "add",
    "Add two numbers",
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
ANSWER = OutputSchema(
    "Answer", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
)
PNG = "iVBORw0KGgo="


@pytest.mark.spec("MODEL-14")
async def test_plain_answer(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="hi"))
    response = await asked.model.request(HELLO)
    await asked.model.aclose()
    assert response.message.content == (TextContent("hi"),)
    assert response.message.stop_reason == "endTurn"
    assert response.usage == Usage(10, 5, cache_read_tokens=4, requests=1)
    [seen] = asked.wire.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body["messages"] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
    ]


async def test_a_native_form_is_json_and_never_holds_the_key(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="hi"))
    response = await asked.model.request(HELLO)
    await asked.model.aclose()
    text = json.dumps(response.message.native)
    assert KEY not in text
    assert json.loads(text) == response.message.native


async def test_parameters_reach_the_wire_and_those_of_the_request_win(
    start_wire: StartWire,
) -> None:
    asked = ask_of(
        start_wire,
        Wired.answer(content="hi"),
        params=RequestParams(temperature=1.0, seed=4, top_k=3),
        effort="low",
    )
    params = RequestParams(
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        stop_sequences=("END",),
        presence_penalty=1.0,
        frequency_penalty=-1.0,
        extra_body={"min_p": 0.1},
    )
    await asked.model.request(ModelRequest("", [Message.user("x")], params=params))
    await asked.model.aclose()
    [body] = asked.bodies
    wanted = {
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 4,
        "top_k": 3,
        "stop": ["END"],
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "min_p": 0.1,
    }
    assert {key: body[key] for key in wanted} == wanted
    assert [message["role"] for message in body["messages"]] == ["user"]


@pytest.mark.spec("MODEL-14")
async def test_parallel_tool_calls_keep_their_order_and_results_go_back(
    start_wire: StartWire,
) -> None:
    calls = [Wired.call("t1", "add", '{"a": 1}'), Wired.call("t2", "add", '{"a": 2}', 1)]
    asked = ask_of(
        start_wire,
        Wired.answer("tool_calls", content=None, tool_calls=calls),
        Wired.answer(content="done"),
    )
    request = ModelRequest(
        "", [Message.user("add")], [ADD], RequestParams(parallel_tool_calls=True)
    )
    response = await asked.model.request(request)
    assert response.message.tool_calls == (
        ToolCall("t1", "add", {"a": 1}),
        ToolCall("t2", "add", {"a": 2}),
    )
    assert response.message.stop_reason == "toolUse"
    results = Message(
        "user",
        tool_results=(
            ToolResult("t1", (TextContent("one"), TextContent("two"))),
            ToolResult("t2", (TextContent("boom"),), is_error=True),
        ),
    )
    await asked.model.request(ModelRequest("", [request.messages[0], response.message, results]))
    await asked.model.aclose()
    first, second = asked.bodies
    assert first["tools"][0]["function"]["parameters"] == ADD.input_schema
    assert first["parallel_tool_calls"] is True
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "tool", "tool"]
    assert [m["tool_call_id"] for m in second["messages"][2:]] == ["t1", "t2"]
    assert second["messages"][2]["content"] == "one\ntwo"
    assert "boom" in second["messages"][3]["content"]
    assert "error" in second["messages"][3]["content"]


async def test_structured_answer_is_asked_for_by_the_api(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content='{"x": 1}'))
    request = ModelRequest("", [Message.user("x?")], output_schema=ANSWER)
    response = await asked.model.request(request)
    await asked.model.aclose()
    assert json.loads(response.message.text) == {"x": 1}
    assert asked.bodies[0]["response_format"]["type"] == "json_schema"
    assert asked.bodies[0]["response_format"]["json_schema"]["name"] == "Answer"


async def test_every_kind_of_content_reaches_the_provider(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="ok"))
    content = (
        TextContent("look"),
        ImageContent(PNG, "image/png"),
        AudioContent("UklGRg==", "audio/wav"),
        EmbeddedResource("file:///a&b", text="</resource>"),
        EmbeddedResource("file:///c", "text/markdown", blob="I2hp"),
        EmbeddedResource("file:///d", "application/zip", blob="AAAA"),
        EmbeddedResource("file:///home/ann/e.png", "image/png", blob=PNG),
        ResourceLink("https://example.test/x", "x", "text/html"),
        OpaqueContent({"type": "hologram"}),
    )
    await asked.model.request(ModelRequest("", [Message("user", content)]))
    await asked.model.aclose()
    [message] = asked.bodies[0]["messages"]
    kinds = [part["type"] for part in message["content"]]
    assert kinds.count("image_url") == 2
    assert kinds.count("input_audio") == 1
    texts = [part["text"] for part in message["content"] if part["type"] == "text"]
    assert texts == [
        "look",
        '<resource uri="file:///a&amp;b" type="text/plain">\n&lt;/resource>\n</resource>',
        '<resource uri="file:///c" type="text/markdown">\n#hi\n</resource>',
        "[resource file:///d: 3 bytes of application/zip]",
        "[e.png]",
        "[resource x: https://example.test/x, text/html]",
        "[a block of the type 'hologram', which cannot be shown here]",
    ]


async def test_broken_base64_is_an_error_that_names_the_block(start_wire: StartWire) -> None:
    request = ModelRequest("", [Message("user", (ImageContent("not base64!", "image/png"),))])
    error = await failure_of_request(ask_of(start_wire), request)
    assert "`image/png` is not valid base64" in error.message


@pytest.mark.spec("TURN-10")
async def test_streamed_and_whole_answers_are_the_same_message(start_wire: StartWire) -> None:
    call = Wired.call("t1", "add", '{"a": 1}')
    half, rest = '{"a"', ": 1}"
    asked = ask_of(
        start_wire,
        Wired.answer("tool_calls", content="hello", reasoning_content="hm", tool_calls=[call]),
        Wired.stream(
            {"role": "assistant", "reasoning_content": "h"},
            {"reasoning_content": "m"},
            {"content": "hel"},
            {"content": "lo"},
            {"tool_calls": [Wired.call("t1", "add", half)]},
            {"tool_calls": [{"index": 0, "function": {"arguments": rest}}]},
            finish="tool_calls",
        ),
    )
    request = ModelRequest("", [Message.user("go")], [ADD])
    whole = (await asked.model.request(request)).message
    streamed = (await asked.model.request(request, asked.deltas.append)).message
    await asked.model.aclose()
    for name in ("content", "tool_calls", "channels", "stop_reason"):
        assert getattr(streamed, name) == getattr(whole, name)
    assert whole.channels["reasoning"] == (TextContent("hm"),)
    assert "".join(d.text for d in asked.deltas if isinstance(d, TextDelta)) == "hello"
    assert "".join(d.text for d in asked.deltas if isinstance(d, ThinkingDelta)) == "hm"
    assert asked.bodies[1]["stream"] is True


async def test_a_closed_model_can_be_asked_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="a"), Wired.answer(content="b"))
    await asked.model.request(HELLO)
    await asked.model.aclose()
    assert (await asked.model.request(HELLO)).message.text == "b"
    await asked.model.aclose()


async def test_a_call_cut_by_the_limit_is_dropped(start_wire: StartWire) -> None:
    calls = [Wired.call("t1", "add", '{"a": 1}'), Wired.call("t2", "add", '{"a":', 1)]
    asked = ask_of(start_wire, Wired.answer("length", content="so", tool_calls=calls))
    message = (await asked.model.request(ModelRequest("", [Message.user("x")], [ADD]))).message
    await asked.model.aclose()
    assert [call.id for call in message.tool_calls] == ["t1"]
    assert message.stop_reason == "maxTokens"
    assert message.native is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", '[1, {"b": 1e999}]'])
async def test_arguments_with_a_number_json_does_not_have_are_no_arguments(
    start_wire: StartWire, number: str
) -> None:
    text = f'{{"a": {number}}}'
    calls = [Wired.call("t1", "add", text)]
    asked = ask_of(start_wire, Wired.answer("tool_calls", tool_calls=calls))
    message = (await asked.model.request(HELLO)).message
    await asked.model.aclose()
    [call] = message.tool_calls
    assert call.arguments == {"INVALID_JSON": text}


async def test_a_call_without_arguments_has_none(start_wire: StartWire) -> None:
    calls = [Wired.call(f"t{at}", "add", text) for at, text in enumerate(("", "{}", "null"))]
    asked = ask_of(start_wire, Wired.answer("tool_calls", tool_calls=calls))
    message = (await asked.model.request(HELLO)).message
    await asked.model.aclose()
    assert [call.arguments for call in message.tool_calls] == [{}, {}, {}]


async def test_a_refusal_is_an_answer_with_its_reason(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content=None, refusal="I will not"))
    message = (await asked.model.request(HELLO)).message
    await asked.model.aclose()
    assert message.stop_reason == "refusal"
    assert message.text == "I will not"


def test_importing_the_adapter_does_not_import_the_library() -> None:
    program = (
        "import sys; import fast_agent.models.providers.provider as p; "
        "p.ProviderModel(p.Endpoint(provider='openai', model='x', api_key='k')); "
        "print([n for n in ('pydantic_ai', 'pydantic', 'openai', 'httpx2') if n in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


async def test_one_loop_is_not_held_up_by_the_import(start_wire: StartWire) -> None:
    """The first request makes its link in another thread."""
    asked = ask_of(start_wire, Wired.answer(content="hi"))
    loop_thread = threading.get_ident()

    made_in: list[int] = []
    made = provider._link

    def link(endpoint: Endpoint, stated: StatedFacts) -> Any:
        made_in.append(threading.get_ident())
        return made(endpoint, stated)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "_link", link)
        await asked.model.request(HELLO)
    await asked.model.aclose()
    assert made_in
    assert made_in[0] != loop_thread


def test_a_provider_is_imported_once_and_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[bool] = []

    def connect(endpoint: Endpoint) -> None:
        del endpoint
        running.append(provider.is_importing())
        time.sleep(0.05)  # so that the others come while it runs

    monkeypatch.setattr(provider, "connect", connect)
    monkeypatch.setattr(provider, "_warm", set[str]())
    threads = [threading.Thread(target=provider.warm, args=("openai",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    provider.warm("passthrough")
    assert running == [True]
    assert not provider.is_importing()


jitters = st.floats(0, 1)


@given(st.integers(1, 40), jitters)
def test_waits_grow_to_a_bound(attempt: int, jitter: float) -> None:
    policy = RetryPolicy()
    wait = policy.wait(attempt, None, jitter)
    assert 0 < wait <= policy.longest_wait
    assert policy.wait(attempt + 1, None, jitter) >= wait


@given(st.floats(0, 3600), jitters)
def test_what_the_provider_asks_is_a_minimum(asked: float, jitter: float) -> None:
    assert asked <= RetryPolicy().wait(1, asked, jitter) <= asked * 1.25


async def test_the_sdk_does_not_search_the_messages_of_a_conversation(
    start_wire: StartWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[object] = []
    transform = vars(completions)["async_maybe_transform"]

    async def search(data: dict[str, object], expected: object) -> object:
        searched.append(data["messages"])
        return await transform(data, expected)

    monkeypatch.setattr(completions, "async_maybe_transform", search)
    asked = ask_of(start_wire, Wired.answer(content="hi"))
    messages = [Message.user("a"), Message.assistant("b"), Message.user("c")]
    await asked.model.request(ModelRequest("", messages))
    await asked.model.aclose()
    [body] = asked.bodies
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("user", "a"), ("assistant", "b"), ("user", "c")]  # fmt: skip
    assert searched == [()]
