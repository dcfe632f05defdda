"""One run of `fast-agent acp`: load, then serve an editor or write the cards."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.acp.handover import Handover
from fast_agent.app import FastAgent
from fast_agent.cli import wanted
from fast_agent.cli.dump import check_dump, dump_agents, wants_dump
from fast_agent.cli.faults import Faults
from fast_agent.cli.loading import load_cards
from fast_agent.cli.log import show_log
from fast_agent.errors import ConfigError
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Editing:
    """The options of `fast-agent acp`, and what it does with them."""

    cards: tuple[str, ...]
    card_tools: tuple[str, ...]
    multi_card: bool
    agent: str | None
    model: str | None
    servers: tuple[str, ...]
    shell: bool
    watch: bool
    no_session: bool
    trust: bool
    config_path: Path | None
    dump: Path | None
    dump_yaml: Path | None
    dump_agent: str | None
    dump_agent_path: Path | None
    dump_agent_yaml: bool
    quiet: bool

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong; nothing was served.
            click.UsageError: The options do not go together.
        """
        check_dump(self)
        show_log(quiet=self.quiet)
        handover = Handover.taken(os.environ)  # before the program takes its environment from there
        program = FastAgent(config_path=self.config_path)
        with Faults() as faults:
            with faults.kept():
                wanted.check_servers(program, self.servers)
            with faults.kept():
                self._load(program)
            with faults.kept():
                wanted.check_model(program, self.model)
        if wants_dump(self):
            dump_agents(program, self)
        else:
            self._serve(program, handover)

    def _load(self, program: FastAgent) -> None:
        load_cards(
            program,
            cards=self.cards,
            tools=self.card_tools,
            servers=wanted.known_servers(program, self.servers),
            receiver=self.agent,
            multi_card=self.multi_card,
            trust=self.trust,
        )
        if not program.names():
            raise ConfigError(
                "there is no agent to talk to", hint="load a card without `tool_only`"
            )
        if self.agent is not None and self.agent not in program.names():
            near = closest(self.agent, program.names())
            hint = f"did you mean `{near}`?" if near else None
            raise ConfigError(f"there is no agent `{self.agent}` to talk to", hint=hint)
        if not self.quiet:
            wanted.report_warnings(program)

    def _serve(self, program: FastAgent, handover: Handover | None) -> None:
        from fast_agent.acp.opening import SessionOpening
        from fast_agent.acp.remembered import FILE, RememberedPermissions
        from fast_agent.acp.stdio import serve_stdio
        from fast_agent.config.home import home_directory

        home = home_directory(os.environ)
        opening = SessionOpening(
            program=program,
            remembered=RememberedPermissions(home / FILE),
            new_id=lambda: f"memory-{os.urandom(8).hex()}",
            agent=self.agent,
            model=self.model,
            shell=self.shell,
            trust_cards=self.trust,
            store=None if self.no_session else partial(wanted.session_store, program),
        )
        serve_stdio(opening, watch=self.watch, handover=handover)
