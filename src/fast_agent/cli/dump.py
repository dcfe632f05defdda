"""The dump options of commands that load cards."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.cli.card_options import CardOptions


def wants_dump(options: CardOptions) -> bool:
    """Whether cards are to be written, and nothing else done."""
    return bool(options.dump or options.dump_yaml or options.dump_agent)


def check_dump(options: CardOptions) -> None:
    """See that the options go together.

    Raises:
        click.UsageError: They do not.
    """
    if bool(options.dump_agent) != bool(options.dump_agent_path):
        raise click.UsageError("--dump-agent and --dump-agent-path go together")
    if options.dump_agent_yaml and not options.dump_agent:
        raise click.UsageError("--dump-agent-yaml goes with --dump-agent")


def dump_agents(program: FastAgent, options: CardOptions) -> None:
    """Write cards, then print the command that runs them.

    Raises:
        CardError: Some agent cannot be written; nothing was.
    """
    from fast_agent.cards.dump import dump_one, dump_set
    from fast_agent.cli.output import standard_output

    load_set, base = program.load_set, program.workspace
    ready: list[Path] = []
    if options.dump is not None:
        dump_set(load_set, options.dump, "markdown", base=base)
        ready.append(options.dump)
    if options.dump_yaml is not None:
        dump_set(load_set, options.dump_yaml, "yaml", base=base)
        ready.append(options.dump_yaml)
    if options.dump_agent is not None and options.dump_agent_path is not None:
        form = "yaml" if options.dump_agent_yaml else "markdown"
        dump_one(load_set, options.dump_agent, options.dump_agent_path, form, base=base)
        ready.append(options.dump_agent_path)
    for path in ready:
        standard_output().line(f"fast-agent go --card {shlex.quote(str(path))} --message 'hello'")
