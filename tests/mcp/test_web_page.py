"""Fetching cards from a real web server on this machine."""

from __future__ import annotations

import ssl
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import pytest

from fast_agent.errors import CardError, TrustError
from fast_agent.mcp import web_page
from fast_agent.mcp.web_page import MAX_CARD_BYTES, fetch_card
from fast_agent.text.web_failure import PROXY_HINT

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A key and its certificate for `localhost`, which no authority signed."""
CARD = "---\ntype: agent\n---\nGrüß Gott.\n"


class Site(ThreadingHTTPServer):
    """A web server whose slow page waits until the tests are over."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Site  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        page = urlsplit(self.path).path  # of a proxy it is a whole address
        body = CARD.encode("utf-8-sig")
        if page == "/moved.md":
            self.send_response(302)
            self.send_header("Location", "/ann.md")
            self.end_headers()
            return
        if page == "/loop.md":
            self.send_response(302)
            self.send_header("Location", "/loop.md")
            self.end_headers()
            return
        if page == "/latin.md":
            body = CARD.encode("latin-1")
        if page == "/large.md":
            body = b"x" * (MAX_CARD_BYTES + 1)
        if page == "/slow.md":
            self.server.over.wait()
            return
        self.close_connection = True
        self.send_response(404 if page == "/nope.md" else 200)
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked may have given up
            self.wfile.write(body)

    def handle(self) -> None:
        with suppress(ssl.SSLError):  # a client that does not trust the certificate
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def running(server: Site) -> Generator[None]:
    """Serve as long as the block lasts."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = Site()
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


def test_a_card_is_fetched_also_from_where_it_moved(site: str) -> None:
    assert fetch_card(f"{site}/ann.md") == (f"{site}/ann.md", CARD)
    assert fetch_card(f"{site}/moved.md") == (f"{site}/ann.md", CARD)


@pytest.mark.spec("FILE-13", "FILE-2")
@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("nope.md", "answered with status 404"),
        ("large.md", "holds more than 1048576 bytes"),
        ("latin.md", "is not text in `utf-8`"),
        ("loop.md", "cannot be fetched"),
    ],
)
def test_what_cannot_be_used(site: str, page: str, message: str) -> None:
    with pytest.raises(CardError, match=message) as raised:
        fetch_card(f"{site}/{page}")
    assert f"/{page}" in raised.value.message


@pytest.mark.spec("FILE-13")
def test_a_slow_server_is_given_up_on(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_page, "CARD_TIMEOUT_SECONDS", 0.05)
    with pytest.raises(CardError, match=r"did not answer within 0.05 seconds"):
        fetch_card(f"{site}/slow.md")


@pytest.mark.anyio
async def test_a_card_is_fetched_where_a_loop_runs_in_the_thread(site: str) -> None:
    assert fetch_card(f"{site}/moved.md").text == CARD


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(CardError, match="cannot be fetched") as raised:
        fetch_card("http://127.0.0.1:9/ann.md")
    assert raised.value.hint == "check the address and the network"


def test_messages_hold_no_secret_of_the_address(site: str) -> None:
    address = site.replace("http://", "http://ann:hunter2@") + "/nope.md?token=abc"
    with pytest.raises(CardError) as raised:
        fetch_card(address)
    assert "hunter2" not in raised.value.message
    assert "abc" not in raised.value.message


def _allow(url: str) -> None:
    """Approve any address."""
    del url


@pytest.fixture
def proxy(site: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server as a proxy, which answers every address as it answers its own."""
    monkeypatch.setenv("http_proxy", site.replace("//", "//ann:hunter2@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    return site


@pytest.mark.parametrize("check", [None, _allow])
def test_a_proxy_is_asked_for_names_that_only_it_knows(
    proxy: str, check: Callable[[str], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "http://cards.invalid/ann.md"
    assert fetch_card(address, check) == (address, CARD)
    monkeypatch.setenv("no_proxy", "cards.invalid")
    with pytest.raises(CardError, match=r"cannot be fetched: "):
        fetch_card(address, check)


def test_a_proxy_that_cannot_be_reached_is_named(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://ann:hunter2@127.0.0.1:9")
    with pytest.raises(CardError) as raised:
        fetch_card("http://cards.invalid/ann.md", _allow)
    assert "through the proxy `http://127.0.0.1:9`" in raised.value.message
    assert raised.value.hint == PROXY_HINT
    assert "connection refused" in raised.value.message


@pytest.mark.spec("TR-G6.1")
def test_behind_a_proxy_a_name_that_leads_to_a_private_network_is_refused(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object, **__: object) -> list[object]:
        return [(0, 0, 0, "", ("10.1.2.3", 80))]

    monkeypatch.setattr(anyio, "getaddrinfo", found)
    with pytest.raises(TrustError, match=r"resolves to `10\.1\.2\.3`"):
        fetch_card("http://docs.example/ann.md", _allow)


@pytest.mark.spec("TR-G6.1")
def test_behind_a_proxy_each_redirect_is_judged(proxy: str) -> None:
    asked: list[str] = []

    def check(url: str) -> None:
        asked.append(url)
        if url.endswith("/ann.md"):
            raise TrustError("not there")

    with pytest.raises(TrustError, match="not there"):
        fetch_card("http://cards.invalid/moved.md", check)
    assert asked == ["http://cards.invalid/moved.md", "http://cards.invalid/ann.md"]


def test_a_certificate_that_is_not_trusted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Site()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with running(server):
        address = f"https://localhost:{server.server_port}/ann.md"
        with pytest.raises(CardError, match="its certificate is not trusted: ") as raised:
            fetch_card(address, _allow)
        assert raised.value.hint == "set `SSL_CERT_FILE` to the file that certifies the server"
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert fetch_card(address, _allow).text == CARD


@pytest.mark.parametrize("check", [None, _allow])
@pytest.mark.parametrize(
    ("variable", "value", "message", "hint"),
    [
        ("SSL_CERT_FILE", "/nowhere.pem", "`SSL_CERT_FILE` cannot be read", "set it to a file of"),
        ("http_proxy", "foo://p:1", r"proxy `foo://p:1`: Unknown scheme", "check the proxy in"),
    ],
)
def test_a_wrong_variable_is_named(
    variable: str,
    value: str,
    message: str,
    hint: str,
    check: Callable[[str], None] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(CardError, match=message) as raised:
        fetch_card("http://cards.invalid/ann.md", check)
    assert (raised.value.hint or "").startswith(hint)
