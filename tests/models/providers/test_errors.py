"""What goes wrong at the wire, what is tried again, and what a user is shown."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.models.conftest import HELLO, KEY, Asked, Reply, ask_of, failure_of_request
from tests.models.conftest import OpenAIWire as Wired
from tests.patience import pass_seconds, until

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ContextError, ModelError
from fast_agent.messages.message import Message
from fast_agent.models.check import Endpoint
from fast_agent.models.model import (
    ModelRequest,
    TextDelta,
)
from fast_agent.models.providers.provider import NO_RETRIES, ProviderModel

if TYPE_CHECKING:
    from tests.models.conftest import StartWire

pytestmark = pytest.mark.anyio


@pytest.mark.spec("MODEL-15")
@pytest.mark.parametrize(
    ("cut", "said"),
    [(False, "ended before it was complete"), (True, "was lost: ")],
    ids=["ends", "cut"],
)
async def test_a_cut_stream_is_an_error_and_is_not_sent_again(
    start_wire: StartWire, cut: bool, said: str
) -> None:
    broken = Wired.stream({"role": "assistant", "content": "he"}, finish=None, cut=cut)
    asked = ask_of(start_wire, broken, Wired.stream({"role": "assistant", "content": "again"}))
    error = await failure_of_request(asked, stream=True)
    assert said in error.message
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


@pytest.mark.spec("MODEL-15")
async def test_401_names_where_the_key_comes_from(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(401, f"Incorrect API key provided: {KEY}"))
    error = await failure_of_request(asked)
    assert "refused the API key" in error.message
    assert "`GENERIC_API_KEY`" in (error.hint or "")
    assert "`generic.api_key`" in (error.hint or "")
    assert len(asked.wire.seen) == 1


async def test_404_names_the_model_and_the_address(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(404, "no such model", "model_not_found"))
    error = await failure_of_request(asked)
    assert f"the endpoint `{asked.wire.url}/v1` has no model `m`" in error.message


@pytest.mark.spec("MODEL-15")
async def test_rate_limit_waits_as_long_as_it_is_asked(start_wire: StartWire) -> None:
    limited = Wired.error(429, "slow down", retry_after="7")
    asked = ask_of(start_wire, limited, limited, Wired.answer(content="ok"))
    assert (await asked.model.request(HELLO)).message.text == "ok"
    await asked.model.aclose()
    assert asked.waits == [7.0, 7.0]


async def test_a_wait_beyond_the_limit_is_an_error_that_says_how_long(
    start_wire: StartWire,
) -> None:
    asked = ask_of(start_wire, Wired.error(429, "slow down", retry_after="3600"))
    error = await failure_of_request(asked)
    assert error.message == "`generic.m` is limiting the rate of requests: slow down"
    assert error.hint == "try again in 3600 seconds"
    assert asked.waits == []


async def test_used_up_credit_is_not_tried_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(429, "no money", "insufficient_quota"))
    error = await failure_of_request(asked)
    assert "credit" in error.message
    assert len(asked.wire.seen) == 1


async def test_failing_servers_are_tried_a_bounded_number_of_times(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, *[Wired.error(503, "oops") for _ in range(20)])
    error = await failure_of_request(asked)
    assert error.message == "`generic.m` is failing (HTTP 503): oops"
    assert asked.waits == [0.375, 0.75, 1.5, 3.0, *[6.0] * 7]
    assert len(asked.wire.seen) == 12


@pytest.mark.spec("MODEL-19")
async def test_retries_are_settable(start_wire: StartWire) -> None:
    failing = [Wired.error(503, "oops") for _ in range(20)]
    asked = ask_of(start_wire, *failing, params=RequestParams(retries=1))
    await failure_of_request(asked)
    assert len(asked.wire.seen) == 2
    asked = ask_of(start_wire, *failing, params=RequestParams(retry_seconds=1.0))
    await failure_of_request(asked)
    assert sum(asked.waits) <= 1.0


@pytest.mark.spec("MODEL-19")
async def test_what_is_not_reached_is_given_up_within_seconds(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, *[Wired.stream(cut=True, finish=None) for _ in range(20)])
    await failure_of_request(asked)
    assert asked.waits == [0.375, 0.75, 1.5]


async def test_500_then_an_answer(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(500, "oops"), Wired.answer(content="ok"))
    assert (await asked.model.request(HELLO)).message.text == "ok"
    await asked.model.aclose()


async def test_a_rejected_request_is_not_tried_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(400, "bad tools"))
    error = await failure_of_request(asked)
    assert error.message == "`generic.m` rejected the request (HTTP 400): bad tools"
    assert len(asked.wire.seen) == 1


@pytest.mark.parametrize(("provider", "hinted"), [("openai", True), ("generic", False)])
async def test_a_server_behind_openai_may_know_chat_completions_only(
    start_wire: StartWire, provider: str, hinted: bool
) -> None:
    asked = ask_of(
        start_wire, Wired.error(400, "Cannot determine type of 'item'"), provider=provider
    )
    error = await failure_of_request(asked)
    assert ("`generic`" in (error.hint or "")) is hinted


async def test_what_a_server_does_not_support_is_not_tried_again(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.error(500, "image input is not supported"))
    error = await failure_of_request(asked)
    assert error.message == (
        "`generic.m` rejected the request (HTTP 500): image input is not supported"
    )
    assert len(asked.wire.seen) == 1


async def test_too_long_a_conversation_says_so(start_wire: StartWire) -> None:
    text = "This model's maximum context length is 10 tokens"
    error = await failure_of_request(
        ask_of(start_wire, Wired.error(400, text, "context_length_exceeded"))
    )
    assert "too long" in error.message
    assert "history" in (error.hint or "")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "request (9036 tokens) exceeds the available context size (4096 tokens)"),
        (500, "Context size has been exceeded."),
        (400, "the input length exceeds the context length"),
        (400, "The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
        (400, "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
        (400, "The number of tokens to keep is greater than the context length (8 >= 4)."),
        (400, "Trying to keep 9 tokens. The model is loaded with context length of only 4 tokens"),
        (400, "invalid params, context window exceeds limit (2013)"),
        (400, "Invalid request: Your request exceeded model token limit: 262144"),
        (400, "This model's maximum prompt length is 131072 but the request contains 537812"),
        (400, "The prompt is too long: 9000, model maximum context length: 4096"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048."),
    ],
)
async def test_every_server_has_its_words_for_too_long_a_conversation(
    start_wire: StartWire, status: int, text: str, stream: bool
) -> None:
    asked = ask_of(start_wire, Wired.error(status, text))
    with pytest.raises(ContextError, match="too long for `generic"):
        await asked.model.request(HELLO, asked.deltas.append if stream else None)
    await asked.model.aclose()
    assert asked.waits == []


@pytest.mark.parametrize("provider", ["anthropic", "google", "mistral"])
async def test_a_gateway_has_the_words_of_openai(start_wire: StartWire, provider: str) -> None:
    text = "This model's maximum context length is 8 tokens"
    asked = ask_of(start_wire, Wired.error(400, text), provider=provider)
    error = await failure_of_request(asked)
    assert isinstance(error, ContextError)
    assert error.message.endswith(f"`: {text}")


@pytest.mark.parametrize("body", [b'{"message": ' * 20_000, b"{no json", b'{"message": "why"}'])
async def test_an_error_is_shown_whatever_its_body_is(start_wire: StartWire, body: bytes) -> None:
    asked = ask_of(start_wire, Reply([body], status=400), provider="mistral")
    error = await failure_of_request(asked)
    assert error.message.startswith("`mistral.m` rejected the request (HTTP 400)")
    assert error.message.endswith(": why") is (b"why" in body)


@pytest.mark.parametrize(
    "event", [b'event: error\ndata: {"error":{"message":"%s"}}', b'data: {"error":"%s"}']
)
async def test_a_stream_can_say_that_the_conversation_is_too_long(
    start_wire: StartWire, event: bytes
) -> None:
    event %= b"The number of tokens to keep is greater than the context length."
    asked = ask_of(
        start_wire, Reply([event + b"\n\n"], headers={"content-type": "text/event-stream"})
    )
    with pytest.raises(ContextError, match="`: The number of tokens to keep"):
        await asked.model.request(HELLO, asked.deltas.append)
    await asked.model.aclose()
    assert asked.waits == []


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "max_tokens must be at most 4096"),
        (400, "`context_length` is not a field of this request"),
        (413, "the request body is larger than 10 MB"),
    ],
)
async def test_other_limits_do_not_shorten_a_conversation(
    start_wire: StartWire, status: int, text: str
) -> None:
    error = await failure_of_request(ask_of(start_wire, Wired.error(status, text)))
    assert not isinstance(error, ContextError)


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(Reply([b"<html></html>"]), id="html"),
        pytest.param(Reply([b'{"a":']), id="half"),
        pytest.param(Reply([b"{}"]), id="empty"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_nonsense_is_an_error(start_wire: StartWire, nonsense: Reply, stream: bool) -> None:
    asked = ask_of(start_wire, nonsense, nonsense)
    error = await failure_of_request(asked, stream=stream)
    assert "cannot be read" in error.message
    assert "\n" not in error.message
    assert "errors.pydantic.dev" not in error.message
    # In a stream nothing of it is seen, so it is asked for as a whole, once and without a wait.
    assert (len(asked.wire.seen), asked.waits) == (1 + stream, [])


@pytest.mark.parametrize("provider", ["anthropic", "generic", "openai"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_web_page_is_named_at_once(
    start_wire: StartWire, provider: str, stream: bool
) -> None:
    page = Reply([b"<html></html>"], headers={"content-type": "text/html; charset=utf-8"})
    asked = ask_of(start_wire, page, provider=provider)
    error = await failure_of_request(asked, stream=stream)
    assert error.message == f"`{provider}.m` gave an answer that cannot be read: it is a web page"
    assert "address" in (error.hint or "")
    assert (len(asked.wire.seen), asked.waits) == (1, [])


async def test_an_endpoint_that_does_not_stream_is_asked_for_whole_answers(
    start_wire: StartWire,
) -> None:
    whole = [Wired.answer(content=text) for text in ("one", "one", "two")]
    asked = ask_of(start_wire, *whole)
    for text in ("one", "two"):
        response = await asked.model.request(HELLO, asked.deltas.append)
        assert response.message.text == text
    await asked.model.aclose()
    assert asked.deltas == [TextDelta("one"), TextDelta("two")]
    assert [body.get("stream", False) for body in asked.bodies] == [True, False, False]


async def test_a_piece_of_an_unknown_kind_is_an_answer_that_cannot_be_read(
    start_wire: StartWire,
) -> None:
    odd = Reply([b"data: [1, 2]\n\n"], headers={"content-type": "text/event-stream"})
    error = await failure_of_request(ask_of(start_wire, odd), stream=True)
    assert "`generic.m` gave an answer that cannot be read: AttributeError" in error.message


async def test_a_user_is_told_why_there_is_no_answer_yet(start_wire: StartWire) -> None:
    busy = [Wired.error(503, "too many"), Wired.error(429, "slow down", retry_after="7")]
    asked = ask_of(start_wire, *busy, Wired.answer(content="ok"))
    told: list[str] = []
    request = replace(HELLO, notify=told.append)
    assert (await asked.model.request(request)).message.text == "ok"
    await asked.model.aclose()
    # The first wait is too short to be worth a word.
    words = "`generic.m` is limiting the rate of requests: slow down; trying again in 7 s"
    assert (len(asked.waits), told) == (2, [words])


async def test_a_provider_that_asks_for_no_wait(start_wire: StartWire) -> None:
    limited = Wired.error(429, "slow down", retry_after="0")
    asked = ask_of(start_wire, limited, retry=NO_RETRIES)
    error = await failure_of_request(asked)
    assert error.hint == "try again"


async def test_a_server_that_is_not_there(start_wire: StartWire) -> None:
    asked = ask_of(start_wire)
    asked.wire.closing.set()
    await anyio.to_thread.run_sync(asked.wire.shutdown)
    asked.wire.server_close()
    error = await failure_of_request(asked)
    assert error.message.startswith(
        f"cannot reach `generic.m` at `{asked.wire.url}/v1`: connection refused"
    )
    assert error.hint == "start the server there"
    assert len(asked.waits) == 3


async def test_a_secret_in_the_address_is_not_shown(start_wire: StartWire) -> None:
    wire = start_wire(Wired.error(404, "gone"))
    address = wire.url.replace("//", f"//user:{KEY}@") + f"/v1?token={KEY}"
    model = ProviderModel(
        Endpoint(provider="generic", model="m", base_url=address), retry=NO_RETRIES
    )
    error = await failure_of_request(Asked(wire, model))
    assert f"the endpoint `{wire.url}/v1` has no model `m`" in error.message
    assert len(wire.seen) == 1


async def test_a_client_of_a_stopped_server_reaches_no_other_one(start_wire: StartWire) -> None:
    """Test the scripted server itself: ports are used again while clients still retry."""
    wire = start_wire(Wired.answer(content="for its own client"))
    former = wire.url.rpartition("/")[0] + "/wire-of-a-stopped-server/v1"
    stray = ProviderModel(
        Endpoint(provider="generic", model="m", base_url=former), retry=NO_RETRIES
    )
    assert "HTTP 421" in (await failure_of_request(Asked(wire, stray))).message
    assert wire.seen == []
    model = ProviderModel(Endpoint(provider="generic", model="m", base_url=f"{wire.url}/v1"))
    assert (await model.request(HELLO)).message.text == "for its own client"
    await model.aclose()


@pytest.mark.spec("MODEL-15")
async def test_timeout_ends_the_request(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="first"), Reply([], hold=True))
    await asked.model.request(HELLO)
    short = ModelRequest("", [Message.user("x")], params=RequestParams(timeout_seconds=60))

    async def let_time_pass() -> None:
        await until(asked.wire.holding.is_set)
        pass_seconds(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_time_pass)
        error = await failure_of_request(asked, short)
        assert error.message == "`generic.m` did not answer within 60 seconds"
    assert await anyio.to_thread.run_sync(asked.wire.client_gone.wait, 60)


async def test_cancelling_closes_the_connection(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.stream({"role": "assistant", "content": "h"}, hold=True))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.model.request, HELLO, asked.deltas.append)
        assert await anyio.to_thread.run_sync(asked.wire.holding.wait, 60)
        tasks.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(asked.wire.client_gone.wait, 60)
    await asked.model.aclose()
    await asked.model.aclose()


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
    assert "fast-agent[groq]" in (caught.value.hint or "")


async def test_parameters_a_provider_cannot_keep_are_refused(start_wire: StartWire) -> None:
    wire = start_wire()
    model = ProviderModel(
        Endpoint(provider="openai", model="gpt-5", api_key=KEY, base_url=f"{wire.url}/v1")
    )
    params = RequestParams(stop_sequences=("END",))
    with pytest.raises(ModelError, match="`openai` does not support `stop_sequences`"):
        await model.request(ModelRequest("", [Message.user("x")], params=params))
    await model.aclose()
    assert wire.seen == []


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


@pytest.mark.spec("MODEL-19")
async def test_a_minute_of_overload_is_waited_out(start_wire: StartWire) -> None:
    busy = [Wired.reply(OVERLOADED, 529) for _ in range(10)]
    asked = ask_of(start_wire, *busy, Wired.answer(content="ok"))
    assert (await asked.model.request(HELLO)).message.text == "ok"
    await asked.model.aclose()
    assert 40 < sum(asked.waits) <= 60


async def test_a_refusal_in_the_middle_of_a_stream_keeps_what_was_said(
    start_wire: StartWire,
) -> None:
    pieces = ({"role": "assistant", "content": "Well, "}, {"content": "first"})
    asked = ask_of(start_wire, Wired.stream(*pieces, finish="content_filter"))
    response = await asked.model.request(HELLO, asked.deltas.append)
    await asked.model.aclose()
    assert (response.message.text, response.message.stop_reason) == ("Well, first", "refusal")
    assert len(asked.wire.seen) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unknown_finish_reason_is_kept(start_wire: StartWire, stream: bool) -> None:
    said = {"role": "assistant", "content": "hm"}
    reply = (
        Wired.stream(said, finish="moon_phase") if stream else Wired.answer("moon_phase", **said)
    )
    asked = ask_of(start_wire, reply)
    response = await asked.model.request(HELLO, asked.deltas.append if stream else None)
    await asked.model.aclose()
    assert (response.message.text, response.message.stop_reason) == ("hm", "moon_phase")


async def test_a_stream_cut_in_a_tool_call_makes_no_call(start_wire: StartWire) -> None:
    call = {"role": "assistant", "tool_calls": [Wired.call("t1", "add", '{"a": 1')]}
    asked = ask_of(start_wire, *[Wired.stream(call, finish=None, cut=True) for _ in range(4)])
    error = await failure_of_request(asked, stream=True)
    assert "was lost" in error.message
    assert asked.deltas == []
