"""What all HTTP clients share: the store of certificates, and no proxy for this machine."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import httpx2
import pytest

from fast_agent.errors import ConfigError
from fast_agent.models.check import Endpoint
from fast_agent.models.http_client import certificates, client_options
from fast_agent.models.providers.classes import connect

if TYPE_CHECKING:
    from types import ModuleType

CERTIFICATE = Path(__file__).parents[1] / "mcp" / "localhost.pem"


def test_a_store_is_read_once_and_again_when_another_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    of_system = certificates()
    assert certificates() is of_system
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    of_file: list[Any] = certificates().get_ca_certs()
    assert [one["subject"] for one in of_file] == [((("commonName", "localhost"),),)]


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


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_no_proxy_is_used_for_this_machine(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

        def serve() -> None:
            for _ in range(2):
                asking, _ = listening.accept()
                with asking:
                    asking.recv(4096)
                    asking.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()

        async def ask() -> list[int]:
            async with library.AsyncClient(**client_options()) as client:
                hosts = ("localhost", "127.0.0.1")
                return [(await client.get(f"http://{host}:{port}/")).status_code for host in hosts]

        assert asyncio.run(ask()) == [204, 204]
        thread.join()
