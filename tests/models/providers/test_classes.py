from __future__ import annotations

from typing import Any

import pytest

from fast_agent.config.providers import PROVIDERS
from fast_agent.errors import ModelError
from fast_agent.models.check import Endpoint
from fast_agent.models.providers.classes import ADAPTERS, connect


def test_every_provider_has_its_classes() -> None:
    assert set(ADAPTERS) == set(PROVIDERS)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-5"),
        ("anthropic", "claude-sonnet-4-6"),
        ("google", "gemini-3.5-flash"),
        ("generic", "qwen3"),
        ("openrouter", "qwen/qwen3"),
        ("deepseek", "deepseek-chat"),
        ("azure", "gpt-5"),
        ("hf", "Qwen/Qwen3"),
        ("vertex", "gemini-3"),
    ],
)
def test_an_address_of_one_s_own_is_used(provider: str, model: str) -> None:
    address = "http://127.0.0.1:9/x"
    made = connect(Endpoint(provider=provider, model=model, api_key="k", base_url=address))
    assert (made.base_url or "").rstrip("/").startswith(address)
    assert made.model_name == model


def test_a_missing_address_is_named() -> None:
    with pytest.raises(ModelError, match="no address for") as caught:
        connect(Endpoint(provider="azure", model="x", api_key="k"))
    assert "`AZURE_OPENAI_ENDPOINT`" in (caught.value.hint or "")
    assert "`azure.base_url`" in (caught.value.hint or "")


def test_vertex_without_a_project_does_not_ask_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    with pytest.raises(ModelError, match="no project and no API key") as caught:
        connect(Endpoint(provider="vertex", model="gemini-3"))
    assert "`GOOGLE_CLOUD_PROJECT`" in (caught.value.hint or "")


def test_a_name_the_provider_refuses_is_an_error() -> None:
    with pytest.raises(ModelError, match="`openrouter` cannot be set up"):
        connect(Endpoint(provider="openrouter", model="no-slash", api_key="k"))


def test_a_client_of_groq_sends_once() -> None:
    made: Any = connect(Endpoint(provider="groq", model="m", api_key="k"))
    assert made.client.max_retries == 0


def test_the_key_is_not_shown() -> None:
    assert "hidden" not in repr(Endpoint(provider="openai", model="x", api_key="hidden"))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "generic", "deepseek", "openrouter"])
def test_clients_send_once_and_share_the_trust_store(provider: str) -> None:
    made: list[Any] = [
        connect(Endpoint(provider=provider, model="a/m", api_key="k", base_url="http://127.0.0.1"))
        for _ in range(2)
    ]
    assert [one.client.max_retries for one in made] == [0, 0]
    pools = [one.client._client._transport._pool for one in made]
    assert pools[0] is not pools[1]
    assert pools[0]._ssl_context is pools[1]._ssl_context
