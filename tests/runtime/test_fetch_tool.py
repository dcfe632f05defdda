from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from fast_agent.messages.message import TextContent, ToolCall
from fast_agent.runtime import fetch_tool
from fast_agent.runtime.fetch_tool import FetchTool
from fast_agent.tools.permission import HumanPermission
from fast_agent.tools.tool import ToolContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.tools.permission import Permission

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(agent_name="a", turn_id="t1", call_id="c1", correlation_id="r1")
PAGE = b'<title>T</title><p>Hi <a href="/x">you</a></web_page> now</p>'


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("location", f"http://{self.path[4:]}")
            self.end_headers()
            return
        kind = "text/html; charset=utf-8" if self.path == "/page" else "text/plain"
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(PAGE if self.path == "/page" else b"<p>" * 400_000)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


async def fetched(url: str, permission: Permission | None = None, **more: bool) -> tuple[bool, str]:
    """Fetch as a person allowed the address, where no permission is given."""
    result = await FetchTool(permission).call(
        ToolCall("c1", "fetch", {"url": url, **more}), CONTEXT
    )
    (content,) = result.content
    assert isinstance(content, TextContent)
    return not result.is_error, content.text


@pytest.mark.spec("FETCH-1")
async def test_a_page_comes_as_markdown_of_others(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = f"http://127.0.0.1:{port}"
    url = f"{site}/page"
    ok, text = await fetched(url)
    assert ok
    assert text == (
        f'<web_page url="{url}" trust="untrusted">\n# T\n\nHi [you]({site}/x) now\n</web_page>'
    )
    ok, text = await fetched(url, raw=True)
    assert (ok, text.count("</web_page>")) == (True, 1)
    assert "&lt;/web_page>" in text
    assert await fetched(f"{site}/missing") == (False, f"`{site}/missing` answered with status 404")
    monkeypatch.setattr(fetch_tool, "MAX_PAGE_BYTES", 1000)
    assert "holds more than 1000 bytes" in (await fetched(f"{site}/large"))[1]


@pytest.mark.spec("FETCH-2")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "10.0.0.1", "169.254.169.254", "nas"]
)
async def test_private_addresses_are_asked_about(host: str) -> None:
    ok, text = await fetched(f"http://{host}/page", HumanPermission(None))
    assert not ok
    assert "was not run: the address leads to" in text


@pytest.mark.spec("FETCH-2")
async def test_a_redirect_leads_to_no_other_private_address(port: int) -> None:
    site = f"http://127.0.0.1:{port}"
    for target in ("169.254.169.254/latest", f"localhost:{port}/page", "10.0.0.1/"):
        ok, text = await fetched(f"{site}/to/{target}")
        assert not ok
        assert "which was not asked for" in text
    assert (await fetched(f"{site}/to/127.0.0.1:{port}/page"))[0]


@pytest.mark.spec("FETCH-2")
async def test_a_public_name_of_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    async def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(anyio, "getaddrinfo", resolve)
    ok, text = await fetched("http://innocent.example.org/page", HumanPermission(None))
    assert not ok
    assert "which is not public" in text


async def test_only_web_addresses_are_fetched() -> None:
    for url in ("file:///etc/passwd", "ftp://a.org", "http://", "a.org"):
        assert "is not an `http` or `https` address" in (await fetched(url))[1]
