"""FastAgent: the Python API, a program whose agents can be declared, served and talked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fast_agent.decorators as decorators
import fast_agent.program_main as program_main
from fast_agent.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.serve.agent_serving import ServeOptions

_PUBLIC = (
    "add_card",
    "add_server",
    "agent",
    "approvals",
    "attach",
    "chain",
    "evaluator_optimizer",
    "interactive",
    "iterative_planner",
    "load",
    "load_agents",
    "load_set",
    "main",
    "maker",
    "names",
    "orchestrator",
    "parallel",
    "reload",
    "router",
    "run",
    "run_sync",
    "serve",
    "server",
    "settings",
    "smart",
    "tool",
    "watch",
    "workspace",
)


class FastAgent(Program):
    """A program's agents.

    Args:
        name: The program's name, for people.
        config_path: The configuration file; None searches for one.
        cwd: The directory the program works in; None is the working directory.
        environ: The environment; None is the process's own.
        ignore_config: Use no configuration file at all.
        trust: How what no person named is treated; None asks at the terminal, where there is one.
        deps: A value, or a list of values, that function tools get by `Deps[Type]` in every run;
            the values of a run come first.
    """

    agent = decorators.agent
    smart = decorators.smart
    chain = decorators.chain
    parallel = decorators.parallel
    evaluator_optimizer = decorators.evaluator_optimizer
    router = decorators.router
    orchestrator = decorators.orchestrator
    iterative_planner = decorators.iterative_planner
    maker = decorators.maker
    tool = decorators.tool

    def server(
        self,
        name: str,
        *,
        command: str | None = None,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        roots: Sequence[str | Path] = (),
        read_timeout_seconds: float | None = None,
        connect_timeout_seconds: float | None = None,
    ) -> None:
        """Declare an MCP server, which agents declared after it use by name.

        Args:
            name: Its name; holds no `__`.
            command: Program and arguments to start, quoted as a POSIX shell would want it.
            url: The address of one that runs, instead of a command.
            env: Variables added to the small environment a started server gets.
            cwd: Where it starts; None is the program's directory.
            headers: HTTP headers for an address.
            roots: Directories reported to it as its roots, or `file:` URIs.
            read_timeout_seconds: Longest wait for an answer; None is the default.
            connect_timeout_seconds: Longest wait for a connection; None is the default.

        Raises:
            ConfigError: It has not one of command and address, or names what the other needs, or an
                agent was declared already.
        """
        from fast_agent.mcp.server import declared_server

        spec = declared_server(
            name,
            workspace=self.workspace,
            command=command,
            url=url,
            env=env,
            cwd=cwd,
            headers=headers,
            roots=roots,
            read_timeout_seconds=read_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
        )
        self.add_server(spec)

    run_sync = program_main.run_sync
    main = program_main.main

    def __dir__(self) -> list[str]:
        """Name what programs use, for completion; commands and servers use more."""
        return sorted(_PUBLIC)

    async def serve(self, options: ServeOptions | None = None) -> None:
        """Serve the agents to MCP clients, as `fast-agent serve` does: `await fast.serve()`.

        Args:
            options: How; None serves over HTTP at 127.0.0.1:8000, in one conversation, and keeps
                no session.

        Raises:
            ConfigError: The server cannot listen on the address, or the configuration is wrong.
            FastAgentError: The agents are wrong.
        """
        from fast_agent.serve.agent_serving import serve

        await serve(self, options)

    async def interactive(self, agent: str | None = None) -> None:
        """Start a conversation with the agents at the terminal, like `fast-agent go`.

        Cards may be loaded and reloaded on the way. Sessions are not kept.

        Args:
            agent: The agent to talk to first; None is the default one.

        Raises:
            RunError: There is no terminal, or no such agent.
            FastAgentError: The agents are wrong.
        """
        async with self.run(grows=True) as app:
            await app.interactive(agent)

    async def _talk(self, app: AgentApp, agent: str | None) -> None:
        from fast_agent.tui.terminal import talk

        await talk(self, app, agent)
