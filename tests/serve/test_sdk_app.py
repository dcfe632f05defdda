"""The SDK's application: nothing plain waits for it, and what needs it does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.serve.agent_world import AgentWorld
from tests.serve.asgi_world import PROGRESS, open_app

from fast_agent.serve import sdk_app

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import sys
from pathlib import Path
import anyio
from fast_agent.app import FastAgent
from fast_agent.serve import sdk_app
from fast_agent.serve.agent_serving import ServeOptions, open_server
from tests.serve.asgi_world import open_app

sdk_app.PATIENCE_SECONDS = 3600.0
HEAVY = ("mcp", "mcp_types", "pydantic", "starlette")

async def main():
    program = FastAgent(cwd=Path(sys.argv[1]), environ={"HOME": sys.argv[1]})
    program.load_agents("ann.md")
    options = ServeOptions(scope="connection")
    async with open_server(program, options) as server, open_app(server) as client:
        await client.begin({"roots": {"listChanged": True}, "elicitation": {"form": {}}})
        client.headers.clear()
        await client.begin()
        listed = await client.send("tools/list")
        assert listed.json["result"]["tools"], listed
        asked = {"name": "ann", "arguments": {"message": "hi"}}
        called = await client.send("tools/call", asked)
        print(called.json["result"]["structuredContent"]["text"])
        print([name for name in HEAVY if name in sys.modules])
        progress = await client.send("tools/call", {**asked, "_meta": {"progressToken": 1}})
        print(progress.json["result"]["structuredContent"]["text"])
        print([name for name in HEAVY if name in sys.modules])

anyio.run(main)
"""


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann")
    return world


def test_plain_clients_are_answered_before_the_sdk_is_imported(world: AgentWorld) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(world.directory)], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "hi",
        "[]",
        "hi",
        "['mcp', 'mcp_types', 'pydantic', 'starlette']",
    ], done.stderr


@pytest.mark.anyio
async def test_requests_wait_for_the_sdk_together(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_app, "PATIENCE_SECONDS", 3600.0)
    texts: list[str] = []
    async with world.serving(scope="connection") as server, open_app(server) as client:
        await client.begin()

        async def call(number: int) -> None:
            asked = {"name": "ann", "arguments": {"message": f"{number}"}, "_meta": PROGRESS}
            reply = await client.send("tools/call", asked, number)
            texts.append(reply.json["result"]["structuredContent"]["text"])

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
    assert sorted(texts) == ["0", "1", "2", "3", "4"]


@pytest.mark.anyio
async def test_a_server_that_ends_before_has_nothing_to_close(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_app, "PATIENCE_SECONDS", 3600.0)
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
    assert "sdk" not in vars(server)
