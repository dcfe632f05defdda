"""`fast-agent acp`: agents in an editor."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from fast_agent.acp.remembered import PERMISSIONS_FILE, RememberedPermissions, RestartState
from fast_agent.cli import card_options, options
from fast_agent.cli.card_options import DumpOptions, check_dump, dump_agents, wants_dump
from fast_agent.cli.output import ErrorCollector, report_input
from fast_agent.cli.process import show_log
from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from fast_agent.app import FastAgent
    from fast_agent.trust.gate import TrustOptions


@frozen(kw_only=True)
class AcpCommand(DumpOptions):
    """The options of `fast-agent acp`, and what it does with them."""

    agent: str | None
    watch: bool
    no_session: bool

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong; nothing was served.
            click.UsageError: The options do not go together.
        """
        check_dump(self)
        show_log(quiet=self.quiet)
        handover = RestartState.taken(
            os.environ
        )  # before the program takes its environment from there
        with ErrorCollector() as faults:
            program = self.program(faults)
        if wants_dump(self):
            dump_agents(program, self)
        else:
            self._serve(program, handover)

    def receiver(self) -> str | None:
        """Return the current agent first."""
        return self.agent

    def load(self, program: FastAgent) -> None:
        """Load the cards, and check that there is an agent to talk to."""
        self.load_cards(program, receiver=self.agent)
        names = [*program.names(), *program.admission.waiting]
        if not names:
            program.admission.require_some(())
            raise ConfigError(
                "there is no agent to talk to", hint="load a card without `tool_only`"
            )
        if self.agent is not None and self.agent not in names:
            near = closest(self.agent, names)
            hint = did_you_mean(near)
            raise ConfigError(f"no agent is named `{self.agent}`", hint=hint)

    def trust_options(self) -> TrustOptions:
        """Return how found agents are treated: the user is asked in the editor, at a prompt."""
        return replace(DumpOptions.trust_options(self), asker=None)

    def _serve(self, program: FastAgent, handover: RestartState | None) -> None:
        from fast_agent.acp.opening import SessionOpening
        from fast_agent.acp.server import serve_stdio
        from fast_agent.cli.main import end_start
        from fast_agent.config.home import home_directory
        from fast_agent.serve.connections import raise_descriptor_limit

        home = home_directory(os.environ)
        opening = SessionOpening(
            program=program,
            remembered=RememberedPermissions(home / PERMISSIONS_FILE),
            new_id=lambda: f"memory-{os.urandom(8).hex()}",
            agent=self.agent,
            model=self.model,
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            trust_cards=self.trust,
            store=None if self.no_session else cache(partial(card_options.session_store, program)),
        )
        raise_descriptor_limit()  # editors leave sessions open, each of which holds its files
        end_start()
        report_input("an editor is expected on standard input: name this command in its settings")
        serve_stdio(opening, watch=self.watch, handover=handover)


@click.command()
@options.cards("the agent")
@click.option("--agent", metavar="NAME", help="The agent to talk to first.")
@options.MODEL
@options.servers("Add configured MCP servers to the agent.")
@options.shell("Allow every agent to run shell commands, each with permission.")
@options.files()
@options.WATCH
@options.NO_SESSION
@options.trust("a smart agent")
@options.CONFIG_PATH
@options.DUMP
@options.quiet("Print no warnings.")
def command(**options: Any) -> None:
    """Run agents in an editor that speaks the Agent Client Protocol.

    The editor starts and stops this command. Each agent is a mode. Shell commands, file changes and
    tools that a card lists under `confirm` need the user's permission.
    """
    AcpCommand(**options).run()
