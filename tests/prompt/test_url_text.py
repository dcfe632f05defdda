from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.errors import ResourceError
from fast_agent.prompt.instruction import UrlTexts, fetch_text, is_web_address

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Pages:
    """Answers a new text each time, or an error, and counts."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.count = 0
        self.fails = False

    async def __call__(
        self, url: str, *, max_bytes: int, timeout: float, check: object = None
    ) -> str:
        self.count += 1
        count = self.count
        self.clock.now += 1
        await anyio.lowlevel.checkpoint()
        if self.fails:
            raise ResourceError(f"`{url}` is gone")
        return f"text {count}"


async def test_a_text_is_kept_for_its_time() -> None:
    clock = Clock()
    pages = Pages(clock)
    texts = UrlTexts(pages, clock, ttl=10)
    assert texts.cached("u") is None
    assert await texts.get("u") == "text 1"
    clock.now += 9.5
    assert texts.cached("u") == "text 1"
    assert await texts.get("u") == "text 1"
    clock.now += 1
    assert texts.cached("u") is None
    assert await texts.get("u") == "text 2"
    assert await texts.get("other") == "text 3"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("ttl", [0, 10])
async def test_askers_at_one_time_share_a_fetch(ttl: float, fails: bool) -> None:
    clock = Clock()
    pages = Pages(clock)
    pages.fails = fails
    texts = UrlTexts(pages, clock, ttl=ttl)
    answers: list[str] = []

    async def ask() -> None:
        try:
            answers.append(await texts.get("u"))
        except ResourceError as error:
            answers.append(error.message)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)
    assert pages.count == 1
    assert answers == ["`u` is gone" if fails else "text 1"] * 20
    pages.fails = False
    clock.now += ttl
    assert await texts.get("u") == "text 2"


async def test_a_failure_is_not_covered_by_an_old_text() -> None:
    clock = Clock()
    pages = Pages(clock)
    texts = UrlTexts(pages, clock, ttl=10)
    await texts.get("u")
    clock.now += 20
    pages.fails = True
    with pytest.raises(ResourceError, match="`u` is gone"):
        await texts.get("u")


class Site(ThreadingHTTPServer):
    """A web server whose slow page waits until the test is over."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Site  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        path = self.path
        if path == "/slow":
            self.server.over.wait()
            return
        status = {"/gone": 404, "/loop": 302, "/moved": 301, "/away": 302}.get(path, 200)
        self.send_response(status)
        bodies = {
            "/latin": "é".encode("latin-1"),
            "/bad": b"\xff\xfe\x00",
            "/binary": b"a\0b",
            "/big": b"x" * 3000,
            "/mark": b"\xef\xbb\xbfhi",
        }
        body = bodies.get(path, "grüße {{env}}".encode())
        if path == "/latin":
            self.send_header("Content-Type", "text/plain; charset=iso-8859-1")
        places = {"/loop": "/loop", "/moved": "/hello", "/away": "file:///etc/passwd"}
        if path in places:
            self.send_header("Location", places[path])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def site() -> Iterator[str]:
    server = Site()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/hello", "grüße {{env}}"),
        ("/moved", "grüße {{env}}"),
        ("/latin", "é"),
        ("/mark", "hi"),
    ],
)
async def test_pages_are_fetched(site: str, path: str, text: str) -> None:
    assert await fetch_text(site + path, max_bytes=100, timeout=60) == text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/gone", "answered with status 404"),
        ("/loop", "cannot be fetched"),
        ("/away", "cannot be fetched"),
        ("/big", "holds more than 100 bytes"),
        ("/bad", "is not text in `utf-8`"),
        ("/binary", "is binary, not text"),
    ],
)
async def test_what_cannot_be_fetched(site: str, path: str, message: str) -> None:
    with pytest.raises(ResourceError) as caught:
        await fetch_text(site + path, max_bytes=100, timeout=60)
    assert message in caught.value.message
    assert f"`{site}{path}`" in caught.value.message


async def test_a_slow_page(site: str) -> None:
    with pytest.raises(ResourceError, match=r"did not answer within 0.1 seconds"):
        await fetch_text(f"{site}/slow", max_bytes=100, timeout=0.1)


async def test_nobody_there() -> None:
    with pytest.raises(ResourceError, match="cannot be fetched"):
        await fetch_text("http://127.0.0.1:9/", max_bytes=100, timeout=60)
    with pytest.raises(ResourceError, match="cannot be fetched"):
        await fetch_text("http://[x/", max_bytes=100, timeout=60)


def test_addresses() -> None:
    assert is_web_address("HTTPS://x.y")
    assert not is_web_address("ftp://x.y")
    assert not is_web_address("x.y")
