"""FastAgent: the Python API, a program whose agents can be declared, served and talked with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar, overload

import fast_agent.decorators as decorators
from fast_agent.errors import ConfigError, FastAgentError, RunError
from fast_agent.program.program import Program

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from fast_agent.agent_app import AgentApp
    from fast_agent.cards.dump import CardFormat
    from fast_agent.messages.message import Message
    from fast_agent.serve.agent_serving import ServeOptions

T = TypeVar("T")


async def _talk(
    program: Program,
    body: Callable[[AgentApp], Awaitable[object]] | None,
    options: dict[str, str | bool | None],
    deps: object,
) -> None:
    message, model, agent = (_text(options, name) for name in ("message", "model", "agent"))
    async with program.run(model=model, deps=deps, grows=message is None) as app:
        if message is not None:
            print(_shown(await app(message, agent)))  # noqa: T201 (the answer is what is asked for)
        elif body is not None:
            await body(app)
        else:
            await app.interactive(agent)


def _parser(name: str) -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(
        description=f"Run the agents of {name}.", allow_abbrev=False, parents=[_dump_parser()]
    )
    parser.add_argument("--model", metavar="SPEC", help="the model of every agent")
    parser.add_argument("--agent", metavar="NAME", help="the agent to talk to")
    parser.add_argument("--message", "-m", metavar="TEXT", help="send a message, print the answer")
    return parser


def _dump_parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--dump", "--dump-agents", metavar="DIR", help="write the agents as cards")
    parser.add_argument(
        "--dump-yaml", "--dump-agents-yaml", metavar="DIR", help="write the agents as YAML cards"
    )
    parser.add_argument("--dump-agent", metavar="NAME", help="write one agent as a card")
    parser.add_argument("--dump-agent-path", metavar="FILE", help="the file of `--dump-agent`")
    parser.add_argument("--dump-agent-yaml", action="store_true", help="write that card as YAML")
    return parser


def _dump(program: Program, options: dict[str, str | bool | None]) -> bool:
    """Write the cards the options ask for, and say whether they asked for any."""
    from fast_agent.cards.dump import dump_one, dump_set

    one, file = _text(options, "dump_agent"), _text(options, "dump_agent_path")
    if (one is None) != (file is None):
        raise ConfigError("`--dump-agent` and `--dump-agent-path` must be used together")
    if options["dump_agent_yaml"] and one is None:
        raise ConfigError("`--dump-agent-yaml` requires `--dump-agent`")
    base = program.workspace
    sets: tuple[tuple[str, CardFormat], ...] = (("dump", "markdown"), ("dump_yaml", "yaml"))
    wanted = False
    for option, form in sets:
        directory = _text(options, option)
        if directory is not None:
            dump_set(program.load_set, Path(directory), form, base=base)
            wanted = True
    if one is not None and file is not None:
        form = "yaml" if options["dump_agent_yaml"] else "markdown"
        dump_one(program.load_set, one, Path(file), form, base=base)
        wanted = True
    return wanted


def _may_dump(program: Program) -> bool:
    """Whether the command line may ask for the agents of a program that its script holds."""
    if not any(one.startswith("--dump") for one in sys.argv[1:]):
        return False
    return any(value is program for value in vars(sys.modules["__main__"]).values())


def _text(options: dict[str, str | bool | None], name: str) -> str | None:
    value = options[name]
    return value if isinstance(value, str) else None


def _shown(text: str) -> str:
    """Return text as it may be printed: a terminal gets no control characters."""
    from fast_agent.text.visible import visible_lines

    return visible_lines(text) if sys.stdout.isatty() else text


def _fail(error: FastAgentError) -> NoReturn:
    """Print an error and exit with its status."""
    from fast_agent.text.visible import visible_lines

    text = str(error)
    if not error.diagnostics:
        text = f"error: {text}" + (f"\nhint: {error.hint}" if error.hint else "")
    print(visible_lines(text), file=sys.stderr)  # noqa: T201 (a command's errors)
    sys.exit(error.status)


def _run(ask: Callable[[], Awaitable[T]]) -> T:
    from asyncio import run

    async def body() -> T:
        return await ask()

    return run(body())


def _refuse_loop(instead: str, name: str) -> None:
    from asyncio import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        return
    raise RunError(
        f"`{name}` starts an event loop, and one is running already", hint=f"use `{instead}`"
    )


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
        trust: How what no user named is treated; None asks at the terminal, where there is one.
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
        args: Sequence[str | Path] | None = None,
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
            command: The program to start; without `args`, its arguments too, quoted as for a POSIX
                shell.
            args: Its arguments.
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
            args=args,
            url=url,
            env=env,
            cwd=cwd,
            headers=headers,
            roots=roots,
            read_timeout_seconds=read_timeout_seconds,
            connect_timeout_seconds=connect_timeout_seconds,
        )
        self.add_server(spec)

    @overload
    def run_sync(
        self,
        message: str | Message,
        shape: None = None,
        *,
        agent: str | None = None,
        model: str | None = None,
        deps: object = None,
    ) -> str: ...
    @overload
    def run_sync(
        self,
        message: str | Message,
        shape: type[T],
        *,
        agent: str | None = None,
        model: str | None = None,
        deps: object = None,
    ) -> T: ...
    def run_sync(
        self,
        message: str | Message,
        shape: type[T] | None = None,
        *,
        agent: str | None = None,
        model: str | None = None,
        deps: object = None,
    ) -> str | T:
        """Make the agents live, send one message, return the answer; for programs without a loop.

        Args:
            message: What to send.
            shape: The type of the answer, as for `Agent.structured`; None returns its text.
            agent: The agent; None is the default one.
            model: The model of every agent, over cards and configuration.
            deps: Values for function tools, by their types.

        Raises:
            RunError: An event loop is running already.
            FastAgentError: The agents are wrong, or the turn could not be finished.
        """
        _refuse_loop("await app(…)", "run_sync")

        async def ask() -> str | T:
            async with self.run(model=model, deps=deps) as app:
                asked = app[app.default_name if agent is None else agent]
                if shape is None:
                    return await asked.send(message)
                return await asked.structured(message, shape)

        return _run(ask)

    def main(
        self,
        program: Callable[[AgentApp], Awaitable[object]] | None = None,
        *,
        arguments: Sequence[str] | None = None,
        deps: object = None,
    ) -> int:
        """Run the program as a command with the standard options.

        `--message TEXT` prints the answer; `--dump DIR` and its like write the agents as cards;
        without them `program` runs, or else a user talks with the agents at the terminal. `--model`
        and `--agent` choose the model and the agent. Errors are printed to standard error.

        Args:
            program: What to do with the live agents when no option says what; None opens the
                terminal.
            arguments: The arguments; None takes those of the command line.
            deps: Values for function tools, by their types.

        Returns:
            0, as the exit status that `sys.exit(fast.main())` needs.

        Raises:
            RunError: An event loop is running already.
            SystemExit: It did not succeed, with the status: 1 for an error, 2 for wrong arguments,
                3 for what is not approved, 130 when interrupted. Or `--help` was asked for.
        """
        _refuse_loop("async with fast.run() as app", "main")
        options = _parser(self.name).parse_args(arguments)
        given: dict[str, str | bool | None] = vars(options)
        try:
            if _dump(self, given):
                return 0
            _run(lambda: _talk(self, program, given, deps))
        except FastAgentError as error:
            _fail(error)
        except KeyboardInterrupt:
            sys.exit(130)
        return 0

    def _begin(
        self, notify: Callable[[str], None], shared: tuple[str, ...], *, partial_set: bool
    ) -> None:
        # So `python workflow.py --dump DIR` works for a script that calls `asyncio.run` itself.
        if _may_dump(self):
            options, _ = _dump_parser().parse_known_args()
            try:
                if _dump(self, vars(options)):
                    sys.exit(0)
            except FastAgentError as error:
                _fail(error)
        super()._begin(notify, shared, partial_set=partial_set)

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
