"""Servers with the older transport: events from one address, messages to another."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.mcp.served_everything import served_everything

from fast_agent import FastAgent
from fast_agent.errors import ToolError
from fast_agent.mcp import live_session
from fast_agent.mcp.pool import ServerPool, instructions, need
from fast_agent.mcp.server import HttpTarget, ServerSpec
from fast_agent.messages.message import ToolCall
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture(name="url", scope="module")
def _url() -> Iterator[str]:
    with served_everything("sse") as url:
        yield url


def spec_of(url: str, **changes: Any) -> ServerSpec:
    target = replace(HttpTarget(url=url, transport="sse"), **changes)
    return ServerSpec(name="old", target=target)


class Answers(BaseHTTPRequestHandler):
    """Answers each method with a status; with none, it opens a stream in which nothing comes."""

    statuses: ClassVar[dict[str, int | None]] = {}

    def do_GET(self) -> None:
        status = self.statuses[self.command]
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(status or 200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", "0" if status else "1000000")
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - so it is named there
        pass


@contextmanager
def answering(**statuses: int | None) -> Generator[str]:
    handler = type("Handler", (Answers,), {"statuses": statuses})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/sse"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.spec("MCPS-1")
@pytest.mark.parametrize("transport", ["sse", "http"])  # the latter is the default
async def test_a_server_with_events_is_used_as_any_other(
    url: str, transport: str, make_context: Any
) -> None:
    async with ServerPool([spec_of(url, transport=transport)]) as pool:
        await need(pool.connections(["old"]), "writer")
        toolset = pool.toolset("old", ServerFilter())
        call = ToolCall("1", "add", {"a": 1, "b": 2})
        result = await toolset.call_tool("add", call, make_context())
        assert getattr(result.content[0], "text", "") == "3"


async def test_an_address_without_events_is_reported(http_server: Any) -> None:
    async with ServerPool([spec_of(f"{http_server.url}/none")]) as pool:
        with pytest.raises(ToolError, match="no MCP server answers at"):
            await need(pool.connections(["old"]), "writer")


@pytest.mark.parametrize(
    ("post", "get", "reason"),
    [
        (404, 404, "HTTP status 404"),
        (405, 500, "HTTP status 405"),
        (400, None, "HTTP status 400"),
        (405, 401, "HTTP status 401"),
    ],
)
async def test_a_server_of_neither_transport_is_reported_as_it_answered_first(
    post: int, get: int | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_session, "_EVENTS_SECONDS", 0.3)
    with answering(POST=post, GET=get) as url:
        async with ServerPool([spec_of(url, transport="http")]) as pool:
            with pytest.raises(ToolError, match=reason):
                await need(pool.connections(["old"]), "writer")


async def test_a_server_that_fails_is_not_asked_for_events() -> None:
    with answering(POST=500, GET=401) as url:
        async with ServerPool([spec_of(url, transport="http")]) as pool:
            with pytest.raises(ToolError, match="HTTP status 500"):
                await need(pool.connections(["old"]), "writer")


async def test_nothing_listens(make_context: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with ServerPool([spec_of(f"http://127.0.0.1:{port}/sse")]) as pool:
        with pytest.raises(ToolError, match="connection refused"):
            await need(pool.connections(["old"]), "writer")


@pytest.mark.spec("MCPS-2")
async def test_instructions_are_left_out_where_the_settings_say_so(url: str) -> None:
    with_them = spec_of(url)
    without = replace(with_them, name="quiet", include_instructions=False)
    async with ServerPool([with_them, without]) as pool:
        texts = await instructions(pool.connections(pool.names))
    assert texts == {"old": "Use[31m the tools."}


@pytest.mark.spec("MCPS-1", "MCPS-3")
async def test_a_server_may_be_connected_to_at_the_start(
    url: str, tmp_path: Path, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "fastagent.config.yaml"
    config.write_text(
        f"mcp:\n  servers:\n    old: {{url: '{url}', transport: sse}}\n"
        f"    new: {{url: '{url}', transport: sse, load_on_start: true}}\n"
        "    down: {command: no-such-program, load_on_start: true}\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    environ = {"FAST_AGENT_HOME": str(home)}
    fast = FastAgent("test", cwd=tmp_path, config_path=config, environ=environ)
    fast.agent("ann", "Be brief.", model="passthrough", servers=["old", "new", "down"])
    async with fast.run() as app:

        async def loaded() -> bool:
            states = {one.name: one.state for one in app.runtime.server_reports()}
            return states == {"old": "unused", "new": "connected", "down": "failed"}

        await eventually(loaded)
    assert "the command `no-such-program` was not found" in caplog.text
