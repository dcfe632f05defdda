"""`fast-agent go`: run an agent."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from fast_agent.cli import options

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from fast_agent.tui.input.early_prompt import EarlyPrompt

_ONE_SHOT: Final = (
    "message",
    "prompt_file",
    "results",
    "json_schema",
    "record",
    "replay",
    "dump",
    "dump_yaml",
    "dump_agent",
)
"""Options that do not start a conversation at a terminal."""


@click.command()
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to; default: the default agent.")
@options.MODEL
@click.option(
    "--models",
    metavar="SPECS",
    help="Compare models: send the message to each of these, separated by commas.",
)
@click.option(
    "--message", "-m", metavar="TEXT", help="The message to send; `-` reads standard input."
)
@click.option(
    "--prompt-file",
    "-p",
    type=options.PATH,
    metavar="FILE",
    help="Load a prompt or history and run it.",
)
@click.option("--session", is_flag=True, help="Save the conversation as a session.")
@click.option("--no-session", is_flag=True, help="Do not save the conversation as a session.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Continue a session; without ID, the newest one in this directory.",
)
@click.option(
    "--results", type=options.PATH, metavar="FILE", help="Write the conversation to a file."
)
@click.option(
    "--json-schema",
    type=options.PATH,
    metavar="FILE",
    help="Require an answer that matches this JSON Schema.",
)
@options.servers("Add configured MCP servers to the agent.")
@click.option("--url", "urls", multiple=True, metavar="URL", help="Add an MCP server over HTTP.")
@click.option(
    "--stdio",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Add an MCP server, started by this command.",
)
@options.shell()
@options.files()
@options.ALLOW
@options.trust("a smart agent")
@click.option(
    "--plain", is_flag=True, help="Read and print plain lines, without terminal control sequences."
)
@click.option(
    "--doctor", is_flag=True, help="Print what was found of the terminal, and start nothing."
)
@click.option("--watch", is_flag=True, help="Reload cards when their files change.")
@click.option("--reload", is_flag=True, help="Reload cards with the command `/reload`.")
@options.ENGINE
@options.child_history()
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print only the answer.")
@options.output_format(
    "json",
    "events",
    help_text="Print the answer, a JSON object with the answer and its usage, or every event as a "
    "line of JSON.",
)
@click.option(
    "--record", type=options.PATH, metavar="FILE", help="Record the run, to replay it later."
)
@click.option(
    "--replay",
    type=options.PATH,
    metavar="FILE",
    help="Replay a recorded run without models, servers or a network.",
)
def command(*, doctor: bool, **options: Any) -> None:
    """Load cards, send one message to an agent and print its answer.

    Without a message, it starts a conversation in the terminal, which is saved as a session.

    Cards in .fast-agent/agent-cards/ and .fast-agent/tool-cards/ load automatically. Without any
    card, a plain assistant answers.
    """
    if doctor:
        _report_terminal(options)
        return
    with _early_prompt(options) as early:
        from fast_agent.cli.running.one_shot import GoCommand

        GoCommand(early=early, **options).run()


def _report_terminal(options: Mapping[str, Any]) -> None:
    from fast_agent.app import FastAgent
    from fast_agent.cli.output import standard_output
    from fast_agent.trust.gate import TrustOptions
    from fast_agent.tui.doctor import report
    from fast_agent.tui.plain_reason import plain_reason

    program = FastAgent(config_path=options["config_path"], trust=TrustOptions(passive=True))
    settings = program.settings.tui
    plain = plain_reason(flag=options["plain"], environ=os.environ, setting=settings.plain)
    standard_output().write_facts(report(os.environ, settings, plain))


@contextmanager
def _early_prompt(options: Mapping[str, Any]) -> Generator[EarlyPrompt | None]:
    """Show a prompt before the program is imported, if a terminal conversation starts."""
    if not _is_drawn(options):
        yield None
        return
    from fast_agent.cli.output import GuardedText
    from fast_agent.tui.input.early_prompt import EarlyPrompt

    streams = (sys.stdout, sys.stderr)
    guarded = [one for one in streams if isinstance(one, GuardedText) and one.isatty()]
    with EarlyPrompt(sys.stdin, sys.__stdout__ or sys.stdout, guarded) as early:
        yield early


def _is_drawn(options: Mapping[str, Any]) -> bool:
    """Whether a conversation at a terminal starts, which is drawn."""
    if os.name != "posix" or any(options[name] not in {None, False} for name in _ONE_SHOT):
        return False
    if sys.stdin is None or sys.stdout is None or not sys.stdin.isatty():
        return False
    from fast_agent.tui.plain_reason import may_be_set, plain_reason

    if plain_reason(flag=options["plain"], environ=os.environ) is not None:
        return False
    return os.environ.get("FAST_AGENT_PLAIN") == "0" or not may_be_set(os.environ)
