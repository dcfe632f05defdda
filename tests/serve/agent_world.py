"""Cards in a directory, the program that loaded them, and a server of its agents in memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from tests.own_home import own_home
from tests.serve.in_process import client_of
from tests.whole_file import write_whole

from fast_agent.app import FastAgent
from fast_agent.serve.agent_server import SESSION_ID
from fast_agent.serve.agent_serving import ServeOptions, open_server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    import mcp_types as types
    from mcp.client import Client

    from fast_agent.serve.agent_server import AgentServer


class AgentWorld:
    """Cards, a program, a clock that stands still.

    Args:
        directory: Where the cards are.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory.parent / f"{directory.name}-home"
        self.now = 0.0
        self.reported: list[str] = []
        self.program = FastAgent(cwd=directory, environ=own_home(directory, self.home))

    def disown(self) -> None:
        """Take back that the directory is the person's own."""
        (self.home / "fastagent.config.yaml").unlink()

    def card(self, name: str, text: str = "Hi.", /, **fields: object) -> Path:
        if "type" not in fields:
            fields = {"model": "passthrough", **fields}
        lines = [f"{key}: {value}\n" for key, value in fields.items()]
        path = self.directory / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"---\n{''.join(lines)}---\n{text}\n")
        return path

    @asynccontextmanager
    async def serving(self, **options: Any) -> AsyncGenerator[AgentServer]:
        if not self.program.snapshot.version:
            self.program.load_agents(self.directory)
        async with open_server(
            self.program,
            ServeOptions(**options),
            notify=self.reported.append,
            clock=lambda: self.now,
        ) as server:
            yield server


@asynccontextmanager
async def connected(
    server: AgentServer, mode: str = "legacy", **more: Any
) -> AsyncGenerator[Client]:
    async with client_of(server, mode=mode, **more) as client:
        yield client


async def ask(client: Client, agent: str, message: str, session: str | None = None) -> str:
    return text_of(await call_agent(client, agent, message, session))


async def call_agent(
    client: Client, agent: str, message: str, session: str | None = None
) -> types.CallToolResult:
    meta: Any = None if session is None else {SESSION_ID: session}
    return await client.call_tool(agent, {"message": message}, meta=meta)


def session_of(result: types.CallToolResult) -> str:
    session = (result.meta or {})[SESSION_ID]
    assert isinstance(session, str)
    return session


def text_of(result: types.CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)


async def heard(client: Client, agent: str) -> list[str]:
    """What the history prompt of an agent says."""
    found = await client.get_prompt(f"{agent}_history")
    return [getattr(one.content, "text", "") for one in found.messages]


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - it comes true elsewhere
            await anyio.sleep(0.01)
