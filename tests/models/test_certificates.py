"""The store of certificates that all HTTP clients share."""

from __future__ import annotations

from pathlib import Path

import pytest

from fast_agent.errors import ConfigError
from fast_agent.models.certificates import certificates
from fast_agent.models.check import Endpoint
from fast_agent.models.providers.classes import connect

CERTIFICATE = Path(__file__).parents[1] / "mcp" / "localhost.pem"


def test_a_store_is_read_once_and_again_when_another_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    of_system = certificates()
    assert certificates() is of_system
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    assert [one["subject"] for one in certificates().get_ca_certs()] == [
        ((("commonName", "localhost"),),)
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "no such file or directory"), ("x", "no certificate or crl found")],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "groq", "mistral"])
def test_a_store_that_cannot_be_read_is_named(
    provider: str, text: str | None, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.pem"
    if text is not None:
        store.write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(store))
    endpoint = Endpoint(provider=provider, model="m", api_key="k", base_url="https://m.example")
    with pytest.raises(ConfigError, match=rf"`SSL_CERT_FILE` cannot be read: {reason}") as raised:
        connect(endpoint)
    assert raised.value.hint == "set it to a file of certificates, or unset it"
