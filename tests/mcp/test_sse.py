"""Servers with the older transport: events from one address, messages to another."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent import FastAgent
from fast_agent.errors import ToolError
from fast_agent.mcp.pool import ServerPool, instructions, need
from fast_agent.mcp.server import HttpTarget, ServerSpec
from fast_agent.messages.message import ToolCall
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parent / "servers/everything.py"


@pytest.fixture(name="url", scope="module")
def _url() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "sse"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/sse"
    process.kill()
    process.wait()
    process.stdout.close()


def spec_of(url: str, **changes: Any) -> ServerSpec:
    return ServerSpec(name="old", target=HttpTarget(url=url, transport="sse", **changes))


@pytest.mark.spec("MCPS-1")
async def test_a_server_with_events_is_used_as_any_other(url: str, make_context: Any) -> None:
    async with ServerPool([spec_of(url)]) as pool:
        await need(pool.connections(["old"]), "writer")
        toolset = pool.toolset("old", ServerFilter())
        call = ToolCall("1", "add", {"a": 1, "b": 2})
        result = await toolset.call_tool("add", call, make_context())
        assert getattr(result.content[0], "text", "") == "3"


async def test_an_address_without_events_is_reported(http_server: Any) -> None:
    async with ServerPool([spec_of(f"{http_server.url}/none")]) as pool:
        with pytest.raises(ToolError, match="no MCP server answers at"):
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
