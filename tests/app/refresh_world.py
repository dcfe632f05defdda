"""A directory of cards, the program that loaded them, and its live agents."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.whole_file import write_whole

from fast_agent.app import FastAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from fast_agent.agent_app import AgentApp


class World:
    """Cards in a directory, and the program that loaded them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.program = FastAgent(
            cwd=directory, environ={"FAST_AGENT_HOME": str(directory / "home")}
        )

    def write(self, name: str, text: str = "Hi.", /, **fields: object) -> None:
        if "type" not in fields:
            fields = {"model": "passthrough", **fields}
        lines = [f"{key}: {value}\n" for key, value in fields.items()]
        write_whole(self.directory / f"{name}.md", f"---\n{''.join(lines)}---\n{text}\n")

    def stamp(self, name: str, number: int, **fields: object) -> None:
        """Write an agent whose function `stamp` gives a number; it asks the next for its own."""
        code = (
            'def stamp(seen: str = "") -> str:\n'
            f'    call = \'***CALL_TOOL stamp {{"seen": "{number}"}}\'\n'
            f'    return f"{{seen}} {number}" if seen else call\n'
        )
        (self.directory / f"{name}_{number}.py").write_text(code)
        self.write(name, function_tools=f'["{name}_{number}.py:stamp"]', **fields)

    @asynccontextmanager
    async def live(self) -> AsyncGenerator[AgentApp]:
        self.program.load_agents(self.directory)
        async with self.program.run(grows=True) as app:
            yield app

    async def reload(self, app: AgentApp) -> bool:
        assert not self.program.reload().refused
        return await app.refresh()
