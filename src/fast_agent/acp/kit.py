"""Kit: what agents of a session get from its client in the place of their own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.acp.terminal import ClientShell
from fast_agent.tools.files.file_tools import FileTool
from fast_agent.tools.shell import DEFAULT_LIMITS, ShellTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fast_agent.acp.client_side import ClientSide
    from fast_agent.acp.files import ClientFiles
    from fast_agent.acp.updates import Updates
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.rpc.peer import Peer
    from fast_agent.tools.tool import Tool


class ClientKit:
    """Changes the tools an agent gets from the runtime.

    Args:
        peer: The client.
        session_id: The session.
        cwd: The session's directory.
        client: What the client offers.
        files: Its files.
        updates: Shows what goes on.
        timeout_seconds: Longest run of a command, where the configuration sets one.
    """

    def __init__(
        self,
        peer: Peer,
        session_id: str,
        cwd: Path,
        client: ClientSide,
        files: ClientFiles,
        updates: Updates,
        timeout_seconds: float | None = None,
    ) -> None:
        self._peer = peer
        self._session_id = session_id
        self._cwd = cwd
        self._client = client
        self._files = files
        self._updates = updates
        self._timeout = timeout_seconds or DEFAULT_LIMITS.timeout_seconds

    def __call__(self, config: AgentConfig, tools: Iterable[Tool]) -> Iterator[Tool]:
        """Give the tools of an agent: commands run in the client's terminal, files are its own."""
        has_files = False
        for tool in tools:
            if isinstance(tool, ShellTool) and self._client.terminal:
                yield self._shell(config, tool)
            elif isinstance(tool, FileTool):
                has_files = True
                yield tool.through(self._files)
            else:
                yield tool
        if not has_files:
            yield from self._files.tools()

    def _shell(self, config: AgentConfig, tool: ShellTool) -> Tool:
        directory = self._cwd
        if config.cwd is not None:
            directory = (config.directory or self._cwd) / config.cwd
        return ClientShell(
            tool, self._peer, self._session_id, directory, self._updates, self._timeout
        )
