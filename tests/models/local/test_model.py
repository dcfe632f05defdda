"""The local model, with the real weights: its form is tested, never what it says."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from bench.local_eval.first_questions import FIRST_QUESTIONS, ask_first, write_starter_set

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError
from fast_agent.messages.message import (
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.models.check import Endpoint
from fast_agent.models.local.answer import Answer, Chunk
from fast_agent.models.local.engine import EngineKey, EnginePool, TemplateAbilities, default_threads
from fast_agent.models.local.model import LocalModel, chat_messages, chat_tools
from fast_agent.models.local.weights import find_weights
from fast_agent.models.model import (
    Delta,
    ModelRequest,
    OutputSchema,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
)
from fast_agent.models.providers.provider import ProviderModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


pytestmark = pytest.mark.anyio

CONTEXT = 512
FEW = RequestParams(max_tokens=6, seed=1, temperature=0.0)
HELLO = ModelRequest("", [Message.user("Say hello.")], params=FEW)
WEATHER = ToolSpec(
    "get_weather", "Weather of a city", {"type": "object", "properties": {"city": {}}}
)


@pytest.fixture(scope="session")
def weights() -> Path:
    checkout = Path(__file__).parents[3] / ".demo" / "home"
    for environ in (os.environ, {**os.environ, "FAST_AGENT_HOME": str(checkout)}):
        try:
            return find_weights("smollm2", environ)
        except ModelError:
            continue
    pytest.fail("the weights of the local model are missing: run `make weights`")


@pytest.fixture(scope="module")
def pool(weights: Path) -> Iterator[EnginePool]:
    """One engine for all tests of this module, held until the end."""
    engines = EnginePool()
    key = EngineKey(path=weights, context=CONTEXT, threads=1)
    engines.acquire(key)
    yield engines
    engines.release(key)
    assert engines.loaded == ()


def model_of(pool: EnginePool, **options: Any) -> LocalModel:
    [key] = pool.loaded
    return LocalModel(key.path, threads=1, context=CONTEXT, engines=pool, **options)


@pytest.mark.spec("MODEL-11")
async def test_an_answer_has_text_counts_and_a_reason(pool: EnginePool) -> None:
    model = model_of(pool)
    response = await model.request(HELLO)
    await model.aclose()
    assert response.message.role == "assistant"
    assert response.message.text.strip()
    assert response.message.stop_reason in {"endTurn", "maxTokens"}
    assert 1 <= response.usage.output_tokens <= 6
    assert response.usage.input_tokens > 0
    assert response.usage.requests == 1


async def test_deltas_make_up_the_text_and_a_seed_repeats_it(pool: EnginePool) -> None:
    model = model_of(pool)
    deltas: list[Delta] = []
    streamed = await model.request(HELLO, deltas.append)
    again = await model.request(HELLO)
    await model.aclose()
    assert len(deltas) > 1
    assert all(isinstance(delta, TextDelta) for delta in deltas)
    assert "".join(delta.text for delta in deltas) == streamed.message.text
    assert again.message == streamed.message


@pytest.mark.spec("MODEL-11")
async def test_a_structured_answer_fits_its_schema(pool: EnginePool) -> None:
    schema = {
        "type": "object",
        "properties": {
            "agent": {"enum": ["cook", "pilot"]},
            "reasons": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        },
        "required": ["agent", "reasons"],
        "additionalProperties": False,
    }
    model = model_of(pool)
    params = RequestParams(max_tokens=40, seed=1, temperature=0.0)
    request = ModelRequest(
        "", [Message.user("Who flies?")], [WEATHER], params, OutputSchema("Route", schema)
    )
    response = await model.request(request)
    await model.aclose()
    answer = json.loads(response.message.text)
    assert answer["agent"] in {"cook", "pilot"}
    assert len(answer["reasons"]) <= 2
    assert response.message.tool_calls == ()


async def test_a_call_written_as_text_is_a_call(pool: EnginePool) -> None:
    """A grammar makes the model write one, so that the way from text to call is the real one."""
    ids = iter(["call_1"])
    model = model_of(pool, new_id=lambda: next(ids))
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    grammar = f"root ::= {json.dumps(f'Well: {call}')}"
    params = RequestParams(max_tokens=60, extra_body={"grammar": grammar})
    deltas: list[Delta] = []
    request = ModelRequest("", [Message.user("Weather in Paris?")], [WEATHER], params)
    response = await model.request(request, deltas.append)
    await model.aclose()
    assert response.message.tool_calls == (ToolCall("call_1", "get_weather", {"city": "Paris"}),)
    assert response.message.stop_reason == "toolUse"
    assert response.message.text == "Well:"
    assert "".join(delta.text for delta in deltas).rstrip() == "Well:"


@pytest.mark.spec("MODEL-16")
async def test_the_default_is_the_likeliest_answer_and_a_temperature_is_obeyed(
    pool: EnginePool,
) -> None:
    async def texts(temperature: float | None) -> set[str]:
        found: set[str] = set()
        for seed in range(4):
            params = RequestParams(max_tokens=12, seed=seed, temperature=temperature)
            model = model_of(pool)
            question = [Message.user("Name an animal and its colour.")]
            found.add((await model.request(ModelRequest("", question, params=params))).message.text)
            await model.aclose()
        return found

    assert len(await texts(None)) == 1
    assert len(await texts(1.8)) > 1


@pytest.mark.spec("MODEL-16")
@pytest.mark.parametrize("temperature", [None, 1.0])
async def test_an_answer_that_loops_ends_after_its_first_round(
    pool: EnginePool, temperature: float | None
) -> None:
    """A grammar makes the model loop; the model, its runtime and the way out of it are real."""
    loop = 'root ::= "We sail. " ("Practice is key. ")+'
    params = RequestParams(
        max_tokens=300, temperature=temperature, seed=1, extra_body={"grammar": loop}
    )
    request = ModelRequest("", [Message.user("How do I sail?")], [WEATHER], params)
    model = model_of(pool)
    deltas: list[Delta] = []
    response = await model.request(request, deltas.append)
    short = RequestParams(max_tokens=1)
    prompt = (await model.request(ModelRequest("", request.messages, [WEATHER], short))).usage
    await model.aclose()
    assert response.message.text == "We sail. Practice is key."
    assert response.message.stop_reason == "repetition"
    assert "".join(delta.text for delta in deltas) == response.message.text
    assert 10 < response.usage.output_tokens < 100
    assert response.usage.input_tokens == prompt.input_tokens


@pytest.mark.spec("MODEL-16")
async def test_a_structured_answer_may_repeat_itself(pool: EnginePool) -> None:
    word = {"const": "practice is key and practice is key"}
    schema = {"type": "array", "items": word, "minItems": 6, "maxItems": 6}
    params = RequestParams(max_tokens=200)
    shape = OutputSchema("Words", schema)
    model = model_of(pool)
    request = ModelRequest("", [Message.user("Say it.")], (), params, shape)
    response = await model.request(request)
    await model.aclose()
    assert json.loads(response.message.text) == [word["const"]] * 6
    assert response.message.stop_reason == "endTurn"


@pytest.mark.spec("MODEL-16")
async def test_first_questions_are_answered_on_their_subject(weights: Path, tmp_path: Path) -> None:
    """Some of those that `python -m bench.local_eval.first_questions` asks, the README's first."""
    asked = [FIRST_QUESTIONS[at] for at in (0, 3, 13, 18)]
    spec = f"local?path={weights}&threads=1"
    judged = await ask_first(asked, write_starter_set(tmp_path), spec)
    assert asked[0].text == "Why is the sky blue?"
    assert {one.question.text: one.faults for one in judged} == {one.text: () for one in asked}


async def test_tools_are_described_and_withheld_after_a_result(pool: EnginePool) -> None:
    question = Message.user("Weather in Paris?")
    asked = Message("assistant", tool_calls=(ToolCall("c", "get_weather", {"city": "Paris"}),))
    result = Message("user", tool_results=(ToolResult("c", (TextContent("rain"),)),))

    async def tokens(messages: Sequence[Message], tools: Sequence[ToolSpec], again: bool) -> int:
        model = model_of(pool, tools_after_result=again)
        params = RequestParams(max_tokens=1)
        response = await model.request(ModelRequest("", messages, tools, params))
        await model.aclose()
        return response.usage.input_tokens

    assert await tokens([question], [WEATHER], False) > await tokens([question], [], False) + 30
    turn = [question, asked, result]
    without = await tokens(turn, [], False)
    assert await tokens(turn, [WEATHER], False) == without
    assert await tokens(turn, [WEATHER], True) > without + 30


async def test_stop_sequences_end_an_answer(pool: EnginePool) -> None:
    model = model_of(pool)
    free = await model.request(HELLO)
    stop = free.message.text[2:4]
    params = RequestParams(max_tokens=6, seed=1, temperature=0.0, stop_sequences=(stop,))
    response = await model.request(ModelRequest("", HELLO.messages, params=params))
    await model.aclose()
    assert stop not in response.message.text
    assert response.message.stop_reason == "endTurn"


async def test_too_long_a_conversation_is_an_error_with_its_numbers(pool: EnginePool) -> None:
    model = model_of(pool)
    with pytest.raises(ModelError, match=f"context holds {CONTEXT}") as caught:
        await model.request(ModelRequest("", [Message.user("word " * 600)]))
    await model.aclose()
    assert "local?context=" in (caught.value.hint or "")


async def test_an_impossible_schema_is_an_error(pool: EnginePool) -> None:
    model = model_of(pool)
    shape = OutputSchema("X", {"type": "no such type"})
    with pytest.raises(ModelError, match="cannot process this request"):
        await model.request(ModelRequest("", [Message.user("x")], output_schema=shape))
    await model.aclose()


async def test_cancelling_returns_at_once_and_stops_the_work(pool: EnginePool) -> None:
    model = model_of(pool)
    long = RequestParams(max_tokens=400, extra_body={"ignore_eos": True})

    async def seconds_of_hello() -> float:
        started = time.perf_counter()
        await model.request(HELLO)
        return time.perf_counter() - started

    # The next request waits for the engine, and 400 tokens take it more than sixty times as long
    # as those few. A machine that is busy may hold up one try, but not each of them.
    for _ in range(5):
        alone = await seconds_of_hello()
        deltas: list[Delta] = []
        with anyio.CancelScope() as scope:

            def first(
                delta: Delta, deltas: list[Delta] = deltas, scope: anyio.CancelScope = scope
            ) -> None:
                deltas.append(delta)
                scope.cancel()

            await model.request(ModelRequest("", [Message.user("Count.")], params=long), first)
        seen = len(deltas)
        behind = await seconds_of_hello()
        assert len(deltas) == seen
        if behind < 15 * alone:
            break
    else:
        pytest.fail("the engine went on with what was cancelled")
    await model.aclose()


async def test_time_limit(pool: EnginePool) -> None:
    model = model_of(pool)
    params = RequestParams(max_tokens=400, timeout_seconds=0.3, extra_body={"ignore_eos": True})
    with pytest.raises(ModelError, match=r"did not answer within 0\.3 seconds"):
        await model.request(ModelRequest("", [Message.user("Count.")], params=params))
    await model.aclose()


async def test_instances_share_the_weights_and_the_last_one_drops_them(weights: Path) -> None:
    engines = EnginePool()
    one, two = (LocalModel(weights, context=128, threads=1, engines=engines) for _ in range(2))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.request, HELLO)
        tasks.start_soon(two.request, HELLO)
    assert one._engine is two._engine
    await one.aclose()
    assert len(engines.loaded) == 1
    await two.aclose()
    await two.aclose()
    assert engines.loaded == ()


async def test_files_that_are_no_weights(tmp_path: Path) -> None:
    text = tmp_path / "text.gguf"
    text.write_text("hello")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    engines = EnginePool()
    for path, words in (
        (tmp_path / "none.gguf", "cannot be read"),
        (text, "not a GGUF file"),
        (broken, "cannot be loaded"),
    ):
        with pytest.raises(ModelError, match=words):
            await LocalModel(path, engines=engines).request(HELLO)
    assert engines.loaded == ()


async def test_the_adapter_speaks_with_the_runtime_s_own_server(pool: EnginePool) -> None:
    """A real peer for `generic`: the OpenAI-compatible server of llama.cpp."""
    [key] = pool.loaded
    engine = pool.acquire(key)
    endpoint = Endpoint(
        provider="generic", model="local", api_key=engine.secret, base_url=f"{engine.url}/v1"
    )
    model = ProviderModel(endpoint)
    deltas: list[Delta] = []
    whole = await model.request(HELLO)
    streamed = await model.request(HELLO, deltas.append)
    shape = OutputSchema(
        "X",
        {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
    )
    params = RequestParams(max_tokens=20, temperature=0.0)
    structured = await model.request(
        ModelRequest("", [Message.user("true?")], params=params, output_schema=shape)
    )
    await model.aclose()
    stranger = ProviderModel(Endpoint(provider="generic", model="x", base_url=f"{engine.url}/v1"))
    with pytest.raises(ModelError, match="refused the API key"):
        await stranger.request(HELLO)
    await stranger.aclose()
    pool.release(key)
    assert whole.message.text == streamed.message.text == "".join(d.text for d in deltas)
    assert whole.usage.output_tokens > 0
    assert isinstance(json.loads(structured.message.text)["x"], bool)


async def test_the_server_is_closed_to_others(pool: EnginePool) -> None:
    [key] = pool.loaded
    engine = pool.acquire(key)
    pool.release(key)
    connection = http.client.HTTPConnection(engine.url.removeprefix("http://"), timeout=60)
    for path in ("/props", "/v1/models", "/slots"):
        connection.request("GET", path, headers={"Origin": "https://example.test"})
        response = connection.getresponse()
        response.read()
        assert path == "/v1/models" or response.status in {401, 403, 404, 501}
        assert not response.getheader("access-control-allow-origin")
    connection.close()


def test_nothing_of_the_runtime_reaches_the_terminal(weights: Path) -> None:
    program = (
        "import anyio, sys; from pathlib import Path; from fast_agent.models.local.model import *; "
        "from fast_agent.models.model import *; from fast_agent.messages.message import *\n"
        "async def main():\n"
        "    m = LocalModel(Path(sys.argv[1]), threads=1, context=128)\n"
        "    p = RequestParams(max_tokens=2)\n"
        "    await m.request(ModelRequest('', [Message.user('x')], params=p)); await m.aclose()\n"
        "assert 'xllamacpp' not in sys.modules\n"
        "anyio.run(main)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(weights)], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("", "")


def test_threads_leave_a_core_free() -> None:
    assert 1 <= default_threads() <= 8


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
    with pytest.raises(ModelError, match="ended before it was complete"):
        answer.finish()
