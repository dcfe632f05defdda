"""The adapter against loopback servers that speak the APIs of Groq, Mistral, xAI and Bedrock."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import zlib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.models.conftest import HELLO, KEY, OpenAIWire, Reply, ask_of, failure_of_request
from tests.patience import PATIENCE
from xai_sdk.proto import (  # pyright: ignore[reportMissingTypeStubs]
    chat_pb2,
    chat_pb2_grpc,
    sample_pb2,
)

from fast_agent.errors import ModelError
from fast_agent.models.check import Endpoint
from fast_agent.models.model import Delta, TextDelta
from fast_agent.models.providers.provider import NO_RETRIES, ProviderModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tests.models.conftest import Json, StartWire

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", ["groq", "mistral"])
async def test_apis_like_that_of_openai(start_wire: StartWire, provider: str, stream: bool) -> None:
    said = {"role": "assistant", "content": "ok"}
    reply = OpenAIWire.stream(said) if stream else OpenAIWire.answer(**said)
    asked = ask_of(start_wire, OpenAIWire.error(500, "x"), reply, provider=provider, path="")
    response = await asked.model.request(HELLO, asked.deltas.append if stream else None)
    await asked.model.aclose()
    assert response.message.text == "ok"
    assert asked.deltas == ([TextDelta("ok")] if stream else [])
    assert len(asked.waits) == 1  # ours: the SDK itself sends once


async def test_groq_takes_reasoning_out_of_the_text(start_wire: StartWire) -> None:
    reply = OpenAIWire.answer(content="<think>hm</think>yes")
    asked = ask_of(start_wire, reply, provider="groq", path="")
    assert (await asked.model.request(HELLO)).message.text == "yes"
    await asked.model.aclose()


class XaiServer(chat_pb2_grpc.ChatServicer):
    """Answers every question alike, over gRPC.

    Args:
        refusal: The status and the words to refuse with, or None.
    """

    def __init__(self, refusal: tuple[grpc.StatusCode, str] | None) -> None:
        self._refusal = refusal

    async def GetCompletion(self, request: object, context: Any) -> object:  # noqa: N802
        await self._refuse(context)
        message = chat_pb2.CompletionMessage(
            role=chat_pb2.MessageRole.ROLE_ASSISTANT, content="hello there"
        )
        done = chat_pb2.CompletionOutput(
            finish_reason=sample_pb2.FinishReason.REASON_STOP, message=message
        )
        return chat_pb2.GetChatCompletionResponse(model="m", outputs=[done])

    async def GetCompletionChunk(  # noqa: N802
        self, request: object, context: Any
    ) -> AsyncIterator[object]:
        await self._refuse(context)
        for text, reason in (("hello ", None), ("there", sample_pb2.FinishReason.REASON_STOP)):
            delta = chat_pb2.Delta(role=chat_pb2.MessageRole.ROLE_ASSISTANT, content=text)
            piece = chat_pb2.CompletionOutputChunk(finish_reason=reason, delta=delta)
            yield chat_pb2.GetChatCompletionChunk(model="m", outputs=[piece])

    async def _refuse(self, context: Any) -> None:
        if self._refusal is not None:
            await context.abort(*self._refusal)


@asynccontextmanager
async def xai_of(
    refusal: tuple[grpc.StatusCode, str] | None = None,
) -> AsyncGenerator[ProviderModel]:
    server: Any = grpc.aio.server()
    grpc_of_chat: Any = chat_pb2_grpc
    grpc_of_chat.add_ChatServicer_to_server(XaiServer(refusal), server)
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    await server.start()
    # As people write it, though gRPC takes a host alone.
    address = f"https://localhost:{port}/v1"
    model = ProviderModel(
        Endpoint(provider="xai", model="m", api_key=KEY, base_url=address), retry=NO_RETRIES
    )
    try:
        yield model
    finally:
        await model.aclose()
        await server.stop(None)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_xai(stream: bool) -> None:
    heard: list[Delta] = []
    async with xai_of() as model:
        response = await model.request(HELLO, heard.append if stream else None)
    assert response.message.text == "hello there"
    assert heard == ([TextDelta("hello "), TextDelta("there")] if stream else [])


async def test_xai_that_refuses_is_quoted() -> None:
    async with xai_of((grpc.StatusCode.PERMISSION_DENIED, "no team")) as model:
        with pytest.raises(ModelError, match=r"does not allow the request \(HTTP 403\): no team"):
            await model.request(HELLO)


async def test_xai_that_is_not_there() -> None:
    endpoint = Endpoint(provider="xai", model="m", api_key=KEY, base_url="localhost:1")
    model = ProviderModel(endpoint, retry=NO_RETRIES)
    with pytest.raises(ModelError) as caught:
        await model.request(HELLO)
    await model.aclose()
    assert caught.value.message.startswith("cannot reach `xai.m` at `localhost:1`: failed to")
    assert "AioRpcError" not in caught.value.message


def frame(kind: str, name: str, value: Json) -> bytes:
    """Return a message of an event stream of Amazon."""
    headers = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    head = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(text)) + text.encode()
        for key, text in headers.items()
    )
    body = json.dumps(value).encode()
    start = struct.pack(">II", 16 + len(head) + len(body), len(head))
    whole = start + struct.pack(">I", zlib.crc32(start)) + head + body
    return whole + struct.pack(">I", zlib.crc32(whole))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    values = {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
        "AWS_CONFIG_FILE": "/nowhere/config",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def bedrock_of(address: str) -> ProviderModel:
    endpoint = Endpoint(provider="bedrock", model="amazon.nova-lite-v1:0", base_url=address)
    return ProviderModel(endpoint, retry=NO_RETRIES)


async def refusal_of(model: ProviderModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.request(HELLO)
    await model.aclose()
    return caught.value


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_bedrock(start_wire: StartWire, stream: bool) -> None:
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    counted = {"usage": usage, "metrics": {"latencyMs": 1}}
    content = {"message": {"role": "assistant", "content": [{"text": "ok"}]}}
    delta = {"contentBlockIndex": 0, "delta": {"text": "ok"}}
    events = [
        frame("event", "messageStart", {"role": "assistant"}),
        frame("event", "contentBlockDelta", delta),
        frame("event", "contentBlockStop", {"contentBlockIndex": 0}),
        frame("event", "messageStop", {"stopReason": "end_turn"}),
        frame("event", "metadata", counted),
    ]
    streamed = Reply(events, headers={"content-type": "application/vnd.amazon.eventstream"})
    whole = OpenAIWire.reply({"output": content, "stopReason": "end_turn", **counted})
    model = bedrock_of(start_wire(streamed if stream else whole).url)
    heard: list[Delta] = []
    response = await model.request(HELLO, heard.append if stream else None)
    await model.aclose()
    assert response.message.text == "ok"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (1, 2)
    assert heard == ([TextDelta("ok")] if stream else [])


@pytest.mark.usefixtures("aws")
async def test_bedrock_says_why_it_refuses(start_wire: StartWire) -> None:
    expired = {"Message": "The token is expired"}
    kind = {"x-amzn-ErrorType": "ExpiredTokenException"}
    reply = OpenAIWire.reply(expired, 403, **kind)
    error = await refusal_of(bedrock_of(start_wire(reply).url))
    assert error.message.endswith("does not allow the request (HTTP 403): The token is expired")
    assert "or your AWS credentials" in (error.hint or "")


@pytest.mark.usefixtures("aws")
async def test_bedrock_without_credentials(
    start_wire: StartWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    error = await refusal_of(bedrock_of(start_wire().url))
    assert error.message.endswith("cannot be used: Unable to locate credentials")
    assert error.hint == "check `AWS_BEARER_TOKEN_BEDROCK` or your AWS credentials"


@pytest.mark.usefixtures("aws")
async def test_bedrock_without_a_region(
    start_wire: StartWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    error = await refusal_of(bedrock_of(start_wire().url))
    assert error.message == "no region for Amazon Bedrock"
    assert "`AWS_REGION`" in (error.hint or "")


@pytest.mark.usefixtures("aws")
async def test_bedrock_with_a_profile_that_is_not_there(
    start_wire: StartWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    error = await refusal_of(bedrock_of(start_wire().url))
    assert error.message.startswith("`bedrock` cannot be set up: The config profile (nope)")


async def test_a_key_that_groq_refuses(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, OpenAIWire.error(401, f"wrong: {KEY}"), provider="groq", path="")
    error = await failure_of_request(asked)
    assert error.message == "Groq refused the API key (HTTP 401)"


@pytest.mark.usefixtures("aws")
def test_a_command_that_is_interrupted_does_not_wait_for_the_sdk_of_amazon(
    start_wire: StartWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = start_wire(Reply([], hold=True))
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", wire.url)
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))
    model = "bedrock.amazon.nova-lite-v1:0"
    program = Path(sys.executable).with_name("fast-agent")
    process = subprocess.Popen(
        [program, "go", "--message", "hello", "--model", model],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert wire.holding.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said.strip()) == (130, "Aborted!"), (process.returncode, said)
