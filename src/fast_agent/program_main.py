"""Running a program without an event loop: `fast.run_sync(…)` and `fast.main()`.

The functions are methods of `FastAgent`.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from fast_agent.errors import FastAgentError, RunError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agent_app import AgentApp
    from fast_agent.cards.dump import CardFormat
    from fast_agent.messages.message import Message
    from fast_agent.program import Program

T = TypeVar("T")


@overload
def run_sync(
    self: Program,
    message: str | Message,
    shape: None = None,
    *,
    agent: str | None = None,
    model: str | None = None,
    deps: object = None,
) -> str: ...
@overload
def run_sync(
    self: Program,
    message: str | Message,
    shape: type[T],
    *,
    agent: str | None = None,
    model: str | None = None,
    deps: object = None,
) -> T: ...
def run_sync(
    self: Program,
    message: str | Message,
    shape: type[T] | None = None,
    *,
    agent: str | None = None,
    model: str | None = None,
    deps: object = None,
) -> str | T:
    """Make the agents live, send one message, and return the answer; for programs without a loop.

    Args:
        self: The program.
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
    self: Program,
    program: Callable[[AgentApp], Awaitable[object]] | None = None,
    *,
    arguments: Sequence[str] | None = None,
    deps: object = None,
) -> int:
    """Run the program as a command with the standard options: `sys.exit(fast.main())`.

    `--message TEXT` prints the answer; `--dump DIR` and its like write the agents as cards; without
    them `program` runs, or else a user talks with the agents at the terminal. `--model` and
    `--agent` choose the model and the agent. Errors are printed to standard error.

    Args:
        self: The program.
        program: What to do with the live agents when no option says what; None opens the terminal.
        arguments: The arguments; None takes those of the command line.
        deps: Values for function tools, by their types.

    Returns:
        The exit status: 0, 1 for an error, 3 for what is not approved, 130 when interrupted.

    Raises:
        RunError: An event loop is running already.
        SystemExit: The arguments are wrong, or `--help` was among them.
    """
    _refuse_loop("async with fast.run() as app", "main")
    options = _parser(self.name).parse_args(arguments)
    given: dict[str, str | bool | None] = vars(options)
    try:
        if _dump(self, given):
            return 0
        _run(lambda: _talk(self, program, given, deps))
    except FastAgentError as error:
        _report(error)
        return error.status
    except KeyboardInterrupt:
        return 130
    return 0


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
    parser = ArgumentParser(description=f"Run the agents of {name}.", allow_abbrev=False)
    parser.add_argument("--model", metavar="SPEC", help="the model of every agent")
    parser.add_argument("--agent", metavar="NAME", help="the agent to talk to")
    parser.add_argument("--message", "-m", metavar="TEXT", help="send a message, print the answer")
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
    from fast_agent.errors import ConfigError

    one, file = _text(options, "dump_agent"), _text(options, "dump_agent_path")
    if (one is None) != (file is None):
        raise ConfigError("`--dump-agent` and `--dump-agent-path` go together")
    if options["dump_agent_yaml"] and one is None:
        raise ConfigError("`--dump-agent-yaml` goes with `--dump-agent`")
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


def _text(options: dict[str, str | bool | None], name: str) -> str | None:
    value = options[name]
    return value if isinstance(value, str) else None


def _shown(text: str) -> str:
    """Return text as it may be printed: a terminal gets no control characters."""
    from fast_agent.text.visible import visible_lines

    return visible_lines(text) if sys.stdout.isatty() else text


def _report(error: FastAgentError) -> None:
    from fast_agent.text.visible import visible_lines

    text = str(error)
    if not error.diagnostics:
        text = f"error: {text}" + (f"\nhint: {error.hint}" if error.hint else "")
    print(visible_lines(text), file=sys.stderr)  # noqa: T201 (a command's errors)


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
