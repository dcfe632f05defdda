"""Proxies and certificates of the environment, as every SDK of a provider takes them."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from tests.models.providers.test_settings import reply_of

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError
from fast_agent.messages.message import Message
from fast_agent.models.check import Endpoint
from fast_agent.models.model import ModelRequest
from fast_agent.models.providers.provider import NO_RETRIES, ProviderModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.models.conftest import StartWire

pytestmark = pytest.mark.anyio

HELLO = ModelRequest("", [Message.user("go")], params=RequestParams(max_tokens=9))
PROVIDERS = [
    ("openai", "gpt-5"),
    ("anthropic", "claude-sonnet-5-5"),
    ("google", "gemini-4-argon"),
    ("generic", "m"),
]


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[str]]]:
    """Start a proxy that notes where it is asked to connect, and refuses."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                asked.append(connection.recv(65536).split(b"\r\n", 1)[0].decode())
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.spec("MODEL-23")
@pytest.mark.parametrize(("provider", "name"), PROVIDERS)
async def test_requests_go_through_the_proxy_of_the_environment(
    proxy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, provider: str, name: str
) -> None:
    address, asked = proxy
    for variable in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(variable, address)
    endpoint = Endpoint(
        provider=provider, model=name, api_key="k", base_url="https://models.example.test/v1"
    )
    model = ProviderModel(endpoint, retry=NO_RETRIES)
    with pytest.raises(ModelError):
        await model.request(HELLO)
    await model.aclose()
    assert asked == ["CONNECT models.example.test:443 HTTP/1.1"]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate for 127.0.0.1 that no trust store has."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    file = tmp_path / "both.pem"
    options = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    name = ("-addext", "subjectAltName=IP:127.0.0.1")
    places = ("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem"))
    command = (openssl, "req", "-x509", *options.split(), *name, *places)
    subprocess.run(command, check=True, capture_output=True)
    file.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    return file


@pytest.mark.spec("MODEL-23")
@pytest.mark.parametrize(("provider", "name"), PROVIDERS)
async def test_certificates_are_those_of_the_system_or_of_ssl_cert_file(
    start_wire: StartWire,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    name: str,
) -> None:
    wire = start_wire(reply_of(provider))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    wire.socket = context.wrap_socket(wire.socket, server_side=True)
    address = wire.url.replace("http:", "https:")
    endpoint = Endpoint(provider=provider, model=name, api_key="k", base_url=address)

    async def ask() -> str:
        model = ProviderModel(endpoint, retry=NO_RETRIES)
        try:
            return (await model.request(HELLO)).message.text
        finally:
            await model.aclose()

    with pytest.raises(ModelError, match=r"(?i)certificate"):
        await ask()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("cert.pem")))
    assert await ask()
