"""The adapter against a loopback server that speaks the Gemini API, its oddities among them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.models.conftest import HELLO, OpenAIWire, Reply, ask_of, failure_of_request

from fast_agent.errors import ModelError
from fast_agent.messages.message import Message, TextContent, ToolResult
from fast_agent.models.check import Endpoint
from fast_agent.models.model import ModelRequest, TextDelta, ToolSpec
from fast_agent.models.providers.provider import NO_RETRIES, ProviderModel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import Asked, Json, StartWire

pytestmark = pytest.mark.anyio

ADD = ToolSpec("add", "Add", {"type": "object", "properties": {"a": {"type": "integer"}}})


def piece(*parts: Json, finish: str | None = None, **more: object) -> Json:
    """Return one answer, or one piece of a streamed one; without parts it has no content."""
    candidate: Json = {"content": {"role": "model", "parts": parts}} if parts else {}
    if finish is not None:
        candidate["finishReason"] = finish
    counted = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": counted, **more}


def answer(body: object, *, stream: bool) -> Reply:
    if not stream:
        return OpenAIWire.reply(body)
    headers = {"content-type": "text/event-stream"}
    return Reply([f"data: {json.dumps(body)}\r\n\r\n".encode()], headers=headers)


def gemini_of(start_wire: StartWire, *script: Reply, **options: Any) -> Asked:
    return ask_of(start_wire, *script, provider="google", path="", **options)


async def test_a_signed_call_and_its_result_go_back(start_wire: StartWire) -> None:
    call = {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "c2ln"}
    reply = OpenAIWire.reply(piece({"text": "so"}, call, finish="STOP"))
    asked = gemini_of(start_wire, reply, reply)
    question = Message.user("go")
    message = (await asked.model.request(ModelRequest("be kind", [question], [ADD]))).message
    assert message.text == "so"
    [made] = message.tool_calls
    assert (made.name, made.arguments) == ("add", {"a": 1})
    result = Message("user", tool_results=(ToolResult(made.id, (TextContent("1"),)),))
    await asked.model.request(ModelRequest("be kind", [question, message, result], [ADD]))
    await asked.model.aclose()
    contents = asked.bodies[1]["contents"]
    assert contents[1]["parts"][1]["thoughtSignature"] == "c2ln"
    assert contents[2]["parts"][0]["functionResponse"]["name"] == "add"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_tool_call_that_the_model_wrote_wrongly_is_asked_for_again(
    start_wire: StartWire, stream: bool
) -> None:
    wrong = answer(piece(finish="MALFORMED_FUNCTION_CALL"), stream=stream)
    right = answer(piece({"text": "ok"}, finish="STOP"), stream=stream)
    asked = gemini_of(start_wire, wrong, right)
    response = await asked.model.request(HELLO, asked.deltas.append if stream else None)
    await asked.model.aclose()
    assert response.message.text == "ok"
    assert asked.deltas == ([TextDelta("ok")] if stream else [])
    assert len(asked.waits) == 1


async def test_an_answer_that_keeps_ending_with_an_error_names_it(start_wire: StartWire) -> None:
    wrong = OpenAIWire.reply(piece(finish="MALFORMED_FUNCTION_CALL"))
    asked = gemini_of(start_wire, *[wrong] * 10)
    error = await failure_of_request(asked)
    assert error.message == "`google.m` ended its answer with an error: MALFORMED_FUNCTION_CALL"
    assert len(asked.wire.seen) == 4


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (piece(finish="RECITATION"), "RECITATION"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
        (
            {"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "not\nhere"}},
            "not here",
        ),
    ],
    ids=["answer", "prompt", "words"],
)
async def test_a_refusal_says_what_is_refused(
    start_wire: StartWire, stream: bool, body: Json, reason: str
) -> None:
    asked = gemini_of(start_wire, answer(body, stream=stream))
    response = await asked.model.request(HELLO, asked.deltas.append if stream else None)
    await asked.model.aclose()
    assert response.message.stop_reason == "refusal"
    assert response.notes == (f"`google.m` refused the content: {reason}",)


@pytest.mark.parametrize(
    "body",
    [{"candidates": []}, {"usageMetadata": {}}, {}],
    ids=["no candidates", "only usage", "nothing"],
)
async def test_an_answer_without_anything_is_no_empty_answer(
    start_wire: StartWire, body: Json
) -> None:
    streamed = answer(body, stream=True)
    whole = OpenAIWire.reply(body)
    asked = gemini_of(start_wire, streamed, *[whole] * 4)
    error = await failure_of_request(asked, stream=True)
    assert error.message == "the answer of `google.m` ended before it was complete"


async def test_an_empty_answer_that_is_finished_is_one(start_wire: StartWire) -> None:
    asked = gemini_of(start_wire, OpenAIWire.reply(piece(finish="STOP")))
    response = await asked.model.request(HELLO)
    await asked.model.aclose()
    assert (response.message.text, response.message.stop_reason) == ("", "endTurn")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_part_of_an_unknown_kind_is_an_answer_that_cannot_be_read(
    start_wire: StartWire, stream: bool
) -> None:
    strange = piece({"hologram": {"x": 1}}, finish="STOP")
    asked = gemini_of(start_wire, answer(strange, stream=stream))
    error = await failure_of_request(asked, stream=stream)
    assert error.message.startswith("`google.m` gave an answer that cannot be read: ")
    assert len(asked.wire.seen) == 1


async def test_vertex_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    model = ProviderModel(Endpoint(provider="vertex", model="m"), retry=NO_RETRIES)
    with pytest.raises(ModelError, match="cannot be used: File ") as caught:
        await model.request(HELLO)
    await model.aclose()
    assert caught.value.hint == "check `VERTEX_API_KEY` or your Google Cloud credentials"


async def test_403_says_why(start_wire: StartWire) -> None:
    why = {"code": 403, "status": "PERMISSION_DENIED", "message": "The API is disabled."}
    asked = gemini_of(start_wire, OpenAIWire.reply({"error": why}, 403))
    error = await failure_of_request(asked)
    assert (
        error.message == "Google Gemini does not allow the request (HTTP 403): The API is disabled"
    )
    assert "`GOOGLE_API_KEY`" in (error.hint or "")
