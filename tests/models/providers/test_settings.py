"""Settings a model does not take, on the wire of each provider: left out with a note, once."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
from tests.models.conftest import AnthropicWire, OpenAIWire, Reply
from tests.models.providers.test_native import model_of, response_of

from fast_agent.cards.agent_config import RequestParams
from fast_agent.config.settings import NO_SETTINGS
from fast_agent.errors import ModelError
from fast_agent.messages.message import Message
from fast_agent.models.check import endpoint_of
from fast_agent.models.facts import facts_of
from fast_agent.models.model import ModelRequest
from fast_agent.models.providers.provider import ProviderModel
from fast_agent.models.spec import parse_model_spec

if TYPE_CHECKING:
    from tests.models.conftest import Json, StartWire

    from fast_agent.config.providers import Effort

pytestmark = pytest.mark.anyio

SAID: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "done", "annotations": []}],
}
GEMINI: Json = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "so"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
}


def reply_of(provider: str) -> Reply:
    match provider:
        case "anthropic":
            return AnthropicWire.answer({"type": "text", "text": "okay"})
        case "openai":
            return response_of(SAID)
        case "google":
            return OpenAIWire.reply(GEMINI)
        case "openrouter":
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "native_finish_reason": "stop",
                "message": {"role": "assistant", "content": "okay"},
            }
            body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
            return OpenAIWire.reply({**body, "provider": "p", "choices": [choice]})
        case _:
            return OpenAIWire.answer(content="okay")


async def ask(
    start_wire: StartWire,
    provider: str,
    name: str,
    params: RequestParams = RequestParams(max_tokens=100),  # noqa: B008
    effort: Effort | None = None,
) -> tuple[Json, tuple[str, ...]]:
    """Ask twice; return the first body and the notes of the first answer."""
    wire = start_wire(reply_of(provider), reply_of(provider))
    model = model_of(wire, provider, name, params=params, effort=effort)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = await model.request(ModelRequest("", [Message.user("go")]))
        second = await model.request(ModelRequest("", [Message.user("go")]))
    await model.aclose()
    assert second.notes == ()
    return wire.seen[0].body, first.notes


def at(body: Any, *keys: str) -> object:
    for key in keys:
        body = body.get(key) or {}
    return body or None


@pytest.mark.parametrize(
    ("provider", "name", "asked", "sent"),
    [
        ("openai", "gpt-5", "minimal", "minimal"),
        ("openai", "gpt-5", "xhigh", "high"),
        ("openai", "o3-mini", "minimal", "low"),
        ("openai", "o3-mini", "none", "low"),
        ("openai", "gpt-6.1-sol", "max", "max"),
        ("openai", "gpt-4.1", "high", None),
        ("anthropic", "claude-sonnet-5-5", "xhigh", "xhigh"),
        ("anthropic", "claude-sonnet-5-5", "minimal", "low"),
        ("anthropic", "claude-opus-4-5", "max", "high"),
        ("google", "gemini-4-argon", "low", "LOW"),
        ("google", "gemini-4-argon", "max", "HIGH"),
        ("deepseek", "deepseek-v4-pro", "max", "max"),
        ("azure", "gpt-5", "max", "high"),
        ("generic", "whatever", "high", "high"),
        ("ollama", "gpt-oss", "low", "low"),
        ("hf", "openai/gpt-oss-120b", "medium", "medium"),
    ],
)
async def test_the_nearest_effort_is_sent_and_a_change_is_noted(
    start_wire: StartWire, provider: str, name: str, asked: Effort, sent: str | None
) -> None:
    body, notes = await ask(start_wire, provider, name, effort=asked)
    places = {
        "openai": ("reasoning", "effort"),
        "anthropic": ("output_config", "effort"),
        "google": ("generationConfig", "thinkingConfig", "thinking_level"),
    }
    assert at(body, *places.get(provider, ("reasoning_effort",))) == sent
    spec = f"`{provider}.{name}`"
    if sent is None:
        assert notes == (f"{spec} does not support `effort {asked}`: left out",)
    elif sent.lower() == asked:
        assert notes == ()
    else:
        assert notes == (f"{spec} does not support effort `{asked}`: `{sent.lower()}` is used",)


@pytest.mark.parametrize(
    ("provider", "name", "params", "left_out"),
    [
        ("openai", "gpt-5", RequestParams(temperature=0.5, top_p=0.9), "`temperature`, `top_p`"),
        ("openai", "gpt-4.1", RequestParams(seed=3, temperature=0.5), "`seed`"),
        ("anthropic", "claude-sonnet-5-5", RequestParams(max_tokens=9, top_k=2), "`top_k`"),
        ("anthropic", "claude-haiku-4-5", RequestParams(max_tokens=9, seed=1), "`seed`"),
        ("generic", "qwen3", RequestParams(top_k=3, seed=1, temperature=0.5), ""),
    ],
)
async def test_what_a_model_does_not_take_is_left_out_with_a_note(
    start_wire: StartWire, provider: str, name: str, params: RequestParams, left_out: str
) -> None:
    body, notes = await ask(start_wire, provider, name, params)
    spec = f"`{provider}.{name}`"
    assert notes == ((f"{spec} does not support {left_out}: left out",) if left_out else ())
    for key in ("temperature", "top_p", "seed"):
        kept = getattr(params, key) is not None and f"`{key}`" not in left_out
        assert (key in body) == kept


@pytest.mark.parametrize(
    ("provider", "name", "kind"),
    [
        ("openai", "gpt-5", "web_search"),
        ("anthropic", "claude-sonnet-5-5", "web_search"),
        ("anthropic", "claude-sonnet-5-5", "web_fetch"),
        ("anthropic", "claude-sonnet-5-5", "code_execution"),
        ("google", "gemini-4-argon", "web_search"),
        ("openrouter", "qwen/qwen3.7-max", "web_search"),
    ],
)
async def test_a_tool_of_the_provider_is_asked_for(
    start_wire: StartWire, provider: str, name: str, kind: str
) -> None:
    spec = parse_model_spec(f"{provider}.{name}?{kind}=on&max_tokens=9")
    body, notes = await ask(start_wire, provider, name, spec.params)
    assert notes == ()
    [tool] = body["tools"]
    names = {"google": "googleSearch", "openrouter": "openrouter:web_search"}
    assert names.get(provider, kind) in str(tool)


@pytest.mark.parametrize(
    ("provider", "name", "kind", "hint"),
    [
        ("openai", "gpt-5", "web_fetch", "it has `web_search`, `code_execution`"),
        ("generic", "qwen3", "web_search", "use tools of an MCP server instead"),
    ],
)
async def test_a_tool_the_provider_does_not_have_is_refused(
    start_wire: StartWire, provider: str, name: str, kind: str, hint: str
) -> None:
    wire = start_wire()
    model = model_of(wire, provider, name, params=parse_model_spec(f"gpt?{kind}=on").params)
    with pytest.raises(ModelError, match=f"`{provider}.{name}` has no `{kind}`") as caught:
        await model.request(ModelRequest("", [Message.user("go")]))
    await model.aclose()
    assert caught.value.hint == hint
    assert wire.seen == []


async def test_a_million_tokens_are_asked_for_by_name(start_wire: StartWire) -> None:
    wire = start_wire(reply_of("anthropic"))
    spec = parse_model_spec("anthropic.claude-sonnet-4-6?context=1m&max_tokens=9")
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": wire.url}
    endpoint = endpoint_of(spec, NO_SETTINGS, environ)
    assert facts_of(endpoint).window == 1_000_000
    model = ProviderModel(endpoint, params=spec.params)
    answer = await model.request(ModelRequest("", [Message.user("go")]))
    await model.aclose()
    assert answer.window == 1_000_000
    assert "context-1m" in wire.seen[0].headers["anthropic-beta"]


@pytest.mark.parametrize(
    "text", ["anthropic.x?context=2m", "openai.gpt-5?context=1m", "gpt?web_search=maybe"]
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        parse_model_spec(text)
