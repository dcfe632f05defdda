"""A directory of cards, a program that loaded them, and a controller at it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.whole_file import write_whole

from fast_agent.app import FastAgent
from fast_agent.commands.controller import ConversationController
from fast_agent.commands.table import run_command
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from fast_agent.commands.command import CommandResult
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.trust.gate import TrustOptions


class DeskWorld:
    """Cards of the offline model, and a shell that runs lines."""

    def __init__(self, directory: Path, trust: TrustOptions | None = None) -> None:
        self.directory = directory / "work"
        self.directory.mkdir()
        self.home = directory / "home"
        self.program = FastAgent(
            cwd=self.directory,
            environ={"FAST_AGENT_HOME": str(self.home), "HOME": str(self.home)},
            trust=trust,
        )
        self.sessions = SessionStore(self.home)
        self.reported: list[str] = []

    def write(self, name: str, text: str = "Hi.", /, **fields: object) -> Path:
        if "type" not in fields:
            fields = {"model": "passthrough", **fields}
        lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
        path = self.directory / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"---\n{lines}---\n{text}\n")
        return path

    @asynccontextmanager
    async def sat(
        self, *, kept: bool = False, servers: tuple[ServerSpec, ...] = ()
    ) -> AsyncGenerator[Shell]:
        """Load the directory and sit down; `kept` in a session."""
        for server in servers:
            self.program.add_server(server)
        self.program.load_agents(self.directory)
        async with self.program.run(grows=True) as app:
            session = self.sessions.create(cwd=self.directory) if kept else None
            controller = ConversationController(
                self.program,
                app,
                sessions=self.sessions if kept else None,
                session=session,
                notify=self.reported.append,
            )
            try:
                yield Shell(controller)
            finally:
                await controller.aclose()


class Shell:
    """A shell without a screen: `await shell("/agents")`."""

    def __init__(self, controller: ConversationController) -> None:
        self.controller = controller

    async def run(self, line: str) -> CommandResult:
        return await run_command(line, self.controller)

    async def __call__(self, line: str) -> str:
        """Run a line that is to succeed, or send one that is a message."""
        if line[0] not in "/@#":
            return await self.controller.instance().send(line)
        result = await run_command(line, self.controller)
        assert not result.failed, result.text
        return result.text

    async def refused(self, line: str) -> str:
        """Run a line that is to fail."""
        result = await run_command(line, self.controller)
        assert result.failed, result.text
        return result.text

    async def tools(self) -> list[str]:
        table = await self.controller.require_llm_agent().setup.tools.table()
        return list(table)
