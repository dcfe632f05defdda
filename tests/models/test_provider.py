"""The adapter against a loopback server that speaks the OpenAI chat API."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.models.conftest import OpenAIWire as Wired
from tests.models.conftest import Reply

from fast_agent.cards.request_params import RequestParams
from fast_agent.errors import ModelError
from fast_agent.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    OpaqueContent,
    ResourceLink,
    TextContent,
)
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import (
    Delta,
    ModelRequest,
    OutputSchema,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
)
from fast_agent.models.provider import Endpoint, ProviderModel
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from tests.models.conftest import StartWire, Wire

pytestmark = pytest.mark.anyio

KEY = "key-that-nobody-may-see"
ADD = ToolSpec(
    "add",
    "Add two numbers",
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)
ANSWER = OutputSchema(
    "Answer", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
)
PNG = "iVBORw0KGgo="


@dataclass
class Asked:
    """A model on a scripted server, and the waits it asked for."""

    wire: Wire
    model: ProviderModel
    waits: list[float] = field(default_factory=list[float])
    deltas: list[Delta] = field(default_factory=list[Delta])

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.wire.seen]


def ask_of(start_wire: StartWire, *script: Reply, path: str = "/v1", **options: Any) -> Asked:
    wire = start_wire(*script)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    endpoint = Endpoint(provider="generic", model="m", api_key=KEY, base_url=wire.url + path)
    model = ProviderModel(endpoint, sleep=sleep, jitter=lambda: 0.0, **options)
    return Asked(wire, model, waits)


HELLO = ModelRequest("be kind", [Message.user("hello")])


async def failure(
    asked: Asked, request: ModelRequest = HELLO, *, stream: bool = False
) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asked.model.request(request, asked.deltas.append if stream else None)
    await asked.model.aclose()
    shown: list[str] = [caught.value.message, caught.value.hint or ""]
    chain: BaseException | None = caught.value
    while chain is not None:
        shown.append(str(chain))
        chain = chain.__cause__
    assert not any(KEY in text for text in shown)
    return caught.value


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
        EmbeddedResource("file:///e", "image/png", blob=PNG),
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
        "[resource x: https://example.test/x, text/html]",
        "[a block of the type 'hologram', which cannot be shown here]",
    ]


async def test_broken_base64_is_an_error_that_names_the_block(start_wire: StartWire) -> None:
    request = ModelRequest("", [Message("user", (ImageContent("not base64!", "image/png"),))])
    error = await failure(ask_of(start_wire), request)
    assert "`image/png` is not valid base64" in error.message


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


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Wired.stream({"role": "assistant", "content": "he"}, finish=None), id="ends"),
        pytest.param(
            Wired.stream({"role": "assistant", "content": "he"}, finish=None, cut=True), id="cut"
        ),
    ],
)
async def test_a_cut_stream_is_an_error_and_is_not_sent_again(
    start_wire: StartWire, broken: Reply
) -> None:
    asked = ask_of(start_wire, broken, Wired.stream({"role": "assistant", "content": "again"}))
    error = await failure(asked, stream=True)
    assert "broke off" in error.message
    assert asked.deltas == [TextDelta("he")]
    assert len(asked.wire.seen) == 1


async def test_a_stream_that_never_began_is_sent_again(start_wire: StartWire) -> None:
    asked = ask_of(
        start_wire, Wired.error(500, "x"), Wired.stream({"role": "assistant", "content": "ok"})
    )
    response = await asked.model.request(HELLO, asked.deltas.append)
    await asked.model.aclose()
    assert response.message.text == "ok"
    assert asked.waits == [0.375]


async def test_401_names_where_the_key_comes_from(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(401, f"Incorrect API key provided: {KEY}"))
    error = await failure(asked)
    assert "refused the API key" in error.message
    assert "`GENERIC_API_KEY`" in (error.hint or "")
    assert "`generic.api_key`" in (error.hint or "")
    assert len(asked.wire.seen) == 1


async def test_404_names_the_model_and_the_address(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(404, "no such model", "model_not_found"))
    error = await failure(asked)
    assert f"the endpoint `{asked.wire.url}/v1` has no model `m`" in error.message


async def test_rate_limit_waits_as_long_as_it_is_told(start_wire: StartWire) -> None:
    limited = Wired.error(429, "slow down", retry_after="7")
    asked = ask_of(start_wire, limited, limited, Wired.answer(content="ok"))
    assert (await asked.model.request(HELLO)).message.text == "ok"
    await asked.model.aclose()
    assert asked.waits == [7.0, 7.0]


async def test_a_wait_beyond_the_limit_is_an_error_that_says_how_long(
    start_wire: StartWire,
) -> None:
    asked = ask_of(start_wire, Wired.error(429, "slow down", retry_after="3600"))
    error = await failure(asked)
    assert error.message == "`generic.m` is limiting the rate of requests: slow down"
    assert error.hint == "try again in 3600 seconds"
    assert asked.waits == []


async def test_used_up_credit_is_not_tried_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(429, "no money", "insufficient_quota"))
    error = await failure(asked)
    assert "credit" in error.message
    assert len(asked.wire.seen) == 1


async def test_failing_servers_are_tried_a_bounded_number_of_times(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, *[Wired.error(status, "oops") for status in (500, 502, 503, 500)])
    error = await failure(asked)
    assert error.message == "`generic.m` is failing (HTTP 500): oops"
    assert asked.waits == [0.375, 0.75, 1.5]
    assert len(asked.wire.seen) == 4


async def test_500_then_an_answer(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(500, "oops"), Wired.answer(content="ok"))
    assert (await asked.model.request(HELLO)).message.text == "ok"
    await asked.model.aclose()


async def test_a_rejected_request_is_not_tried_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(400, "bad tools"))
    error = await failure(asked)
    assert error.message == "`generic.m` rejected the request (HTTP 400): bad tools"
    assert len(asked.wire.seen) == 1


async def test_too_long_a_conversation_says_so(start_wire: StartWire) -> None:
    text = "This model's maximum context length is 10 tokens"
    error = await failure(ask_of(start_wire, Wired.error(400, text, "context_length_exceeded")))
    assert "too long" in error.message
    assert "history" in (error.hint or "")


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(Reply([b"<html></html>"], headers={"content-type": "text/html"}), id="html"),
        pytest.param(Reply([b'{"a":']), id="half"),
        pytest.param(Reply([b"{}"]), id="empty"),
    ],
)
async def test_nonsense_is_an_error(start_wire: StartWire, nonsense: Reply) -> None:
    error = await failure(ask_of(start_wire, nonsense))
    assert "cannot be read" in error.message


async def test_a_server_that_is_not_there(start_wire: StartWire) -> None:
    asked = ask_of(start_wire)
    asked.wire.closing.set()
    await anyio.to_thread.run_sync(asked.wire.shutdown)
    asked.wire.server_close()
    error = await failure(asked)
    assert f"cannot reach `generic.m` at `{asked.wire.url}/v1`" in error.message
    assert len(asked.waits) == 3


async def test_a_secret_in_the_address_is_not_shown(start_wire: StartWire) -> None:
    wire = start_wire(Wired.error(404, "gone"))
    address = wire.url.replace("//", f"//user:{KEY}@") + f"/v1?token={KEY}"
    model = ProviderModel(Endpoint(provider="generic", model="m", base_url=address))
    error = await failure(Asked(wire, model))
    assert wire.url in error.message


async def test_timeout_ends_the_request(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="first"), Reply([], hold=True))
    await asked.model.request(HELLO)
    short = ModelRequest("", [Message.user("x")], params=RequestParams(timeout_seconds=0.2))
    error = await failure(asked, short)
    assert error.message == "`generic.m` did not answer within 0.2 seconds"
    assert await anyio.to_thread.run_sync(asked.wire.client_gone.wait, 5)


async def test_cancelling_closes_the_connection(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.stream({"role": "assistant", "content": "h"}, hold=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.model.request, HELLO, asked.deltas.append)
        assert await anyio.to_thread.run_sync(asked.wire.holding.wait, 10)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(asked.wire.client_gone.wait, 5)
    await asked.model.aclose()
    await asked.model.aclose()


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


async def test_a_refusal_is_an_answer_with_its_reason(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content=None, refusal="I will not"))
    message = (await asked.model.request(HELLO)).message
    await asked.model.aclose()
    assert message.stop_reason == "refusal"
    assert message.text == "I will not"


async def test_a_missing_key_is_named_before_anything_is_sent() -> None:
    model = ProviderModel(Endpoint(provider="anthropic", model="claude-sonnet-4-6"))
    with pytest.raises(ModelError, match="no API key for Anthropic") as caught:
        await model.request(HELLO)
    assert "`ANTHROPIC_API_KEY`" in (caught.value.hint or "")


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.models.groq", None)
    model = ProviderModel(Endpoint(provider="groq", model="x", api_key=KEY))
    with pytest.raises(ModelError, match="not installed") as caught:
        await model.request(HELLO)
    assert "pydantic-ai-slim[groq]" in (caught.value.hint or "")


async def test_parameters_a_provider_cannot_keep_are_refused(start_wire: StartWire) -> None:
    wire = start_wire()
    model = ProviderModel(
        Endpoint(provider="openai", model="gpt-5", api_key=KEY, base_url=f"{wire.url}/v1")
    )
    params = RequestParams(stop_sequences=("END",))
    with pytest.raises(ModelError, match="`openai` does not take `stop_sequences`"):
        await model.request(ModelRequest("", [Message.user("x")], params=params))
    await model.aclose()
    assert wire.seen == []


def test_importing_the_adapter_does_not_import_the_library() -> None:
    program = (
        "import sys; import fast_agent.models.provider as p; "
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
    from fast_agent.models import provider

    made_in: list[int] = []
    made = provider._link

    def link(endpoint: Endpoint) -> Any:
        made_in.append(threading.get_ident())
        return made(endpoint)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "_link", link)
        await asked.model.request(HELLO)
    await asked.model.aclose()
    assert made_in
    assert made_in[0] != loop_thread
