"""CardOptions: options shared by `go`, `serve` and `acp`, and how they load cards."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from fast_agent.app import FastAgent
from fast_agent.cli import wanted
from fast_agent.cli.loading import expect_cards, load_cards
from fast_agent.cli.output import hide_in_errors
from fast_agent.registry.expected import shared_options
from fast_agent.text.frozen import frozen
from fast_agent.trust.gate import TrustOptions, ask_at_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.cli.output import ErrorCollector


@frozen(kw_only=True)
class CardOptions:
    """The options of a command that loads cards."""

    cards: tuple[str, ...]
    card_tools: tuple[str, ...]
    multi_card: bool
    model: str | None
    servers: tuple[str, ...]
    shell: bool
    files: FileAccess | None
    fetch: bool
    trust: bool
    no_found: bool
    config_path: Path | None
    quiet: bool

    def program(self, faults: ErrorCollector) -> FastAgent:
        """Read the configuration, load the cards and check what else the options name.

        Args:
            faults: Keeps what is wrong.

        Raises:
            ConfigError: The configuration cannot be read.
        """
        program = FastAgent(config_path=self.config_path, trust=self.trust_options())
        hide_in_errors(program.redact)
        with faults.kept():
            expect_cards(
                program,
                cards=self.cards,
                tools=self.card_tools,
                servers=self.servers,
                multi_card=self.multi_card,
                model=self.model,
                receiver=self.receiver(),
                reaching=self.reaching(),
                shared=shared_options(shell=self.shell, files=self.files, fetch=self.fetch),
            )
        with faults.kept():
            wanted.check_servers(program, self.servers)
        with faults.kept():
            self.load(program)
            if not self.quiet:
                cards = (*self.cards, *self.card_tools)
                wanted.report_warnings(program, self.most_warnings(), cards)
        with faults.kept():
            wanted.check_model(program, self.model)
        return program

    def receiver(self) -> str | None:
        """Return the agent that gets tools and servers; None is the default one."""
        return None

    def reaching(self) -> tuple[str, ...]:
        """Return the options other than `--servers` that provide servers to the receiver."""
        return ()

    def most_warnings(self) -> int | None:
        """Return how many warnings are printed before the command starts; None is all of them."""
        return None

    def load(self, program: FastAgent) -> None:
        """Load the cards; a command that wants more of them says so here.

        Raises:
            CardError: With every problem of every card.
            ConfigError: With every problem of the configuration.
        """
        self.load_cards(program)

    def load_cards(
        self, program: FastAgent, *, receiver: str | None = None, added: Sequence[str] = ()
    ) -> None:
        """Load the cards.

        Args:
            program: The program.
            receiver: The agent that gets tools and servers; None is the default one.
            added: Servers it gets in addition to those of `--servers`.

        Raises:
            CardError: With every problem of every card.
            ConfigError: With every problem of the configuration.
        """
        load_cards(
            program,
            cards=self.cards,
            tools=self.card_tools,
            servers=(*wanted.known_servers(program, self.servers), *added),
            receiver=receiver,
            multi_card=self.multi_card,
        )

    def trust_options(self) -> TrustOptions:
        """Return how the command treats found files."""
        return TrustOptions(
            everything=self.trust,
            without_found=self.no_found,
            passive=self.is_passive(),
            asker=ask_at_terminal,
        )

    def is_passive(self) -> bool:
        """Return whether the command only reads cards, and runs none."""
        return False


@frozen(kw_only=True)
class DumpOptions(CardOptions):
    """The options of a command that loads cards, and may write them instead of running them."""

    dump: Path | None
    dump_yaml: Path | None
    dump_agent: str | None
    dump_agent_path: Path | None
    dump_agent_yaml: bool

    def is_passive(self) -> bool:
        """Return whether the command only reads cards, and runs none."""
        return wants_dump(self)


def wants_dump(options: DumpOptions) -> bool:
    """Whether cards are to be written, and nothing else done."""
    return bool(options.dump or options.dump_yaml or options.dump_agent)


def check_dump(options: DumpOptions) -> None:
    """Check that the options are compatible.

    Raises:
        click.UsageError: They do not.
    """
    if bool(options.dump_agent) != bool(options.dump_agent_path):
        raise click.UsageError("--dump-agent and --dump-agent-path go together")
    if options.dump_agent_yaml and not options.dump_agent:
        raise click.UsageError("--dump-agent-yaml goes with --dump-agent")


def dump_agents(program: FastAgent, options: DumpOptions) -> None:
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
