"""CardOptions: options shared by `go`, `serve` and `acp`, and how they load cards.

Servers, models, histories and stores that options name are checked and found here as well.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.app import FastAgent
from fast_agent.cli.output import (
    hide_in_errors,
    report_diagnostics,
    report_left_out,
    report_note,
    standard_output,
)
from fast_agent.errors import ConfigError, ModelError
from fast_agent.registry.expected import shared_options
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean
from fast_agent.trust.gate import TrustOptions, ask_at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.cards.agent_config import ChildHistory, FileAccess, HistorySource, HistoryTarget
    from fast_agent.cli.output import ErrorCollector
    from fast_agent.engine.conversation_steps import ConversationSteps
    from fast_agent.sessions.log import StepRecords
    from fast_agent.sessions.store import SessionStore


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
        with faults.collect():
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
        with faults.collect():
            check_servers(program, self.servers)
        with faults.collect():
            self.load(program)
            if not self.quiet:
                cards = (*self.cards, *self.card_tools)
                report_warnings(program, self.most_warnings(), cards)
        with faults.collect():
            check_model(program, self.model)
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
            servers=(*known_servers(program, self.servers), *added),
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
        raise click.UsageError("--dump-agent and --dump-agent-path must be used together")
    if options.dump_agent_yaml and not options.dump_agent:
        raise click.UsageError("--dump-agent-yaml requires --dump-agent")


def dump_agents(program: FastAgent, options: DumpOptions) -> None:
    """Write cards, then print the command that runs them.

    Raises:
        CardError: Some agent cannot be written; nothing was.
    """
    from fast_agent.cards.dump import dump_one, dump_set

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


AGENT_CARDS = Path(".fast-agent/agent-cards")
"""Where a project keeps agents that load automatically."""

TOOL_CARDS = Path(".fast-agent/tool-cards")
"""Where it keeps those that become tools of the default agent."""


def load_cards(
    program: FastAgent,
    *,
    cards: Sequence[str],
    tools: Sequence[str] = (),
    servers: Sequence[str] = (),
    receiver: str | None = None,
    multi_card: bool = False,
) -> None:
    """Load the cards of a command; without any there is one plain assistant.

    Cards that load automatically act once the user approved what they do; see `expect_cards`.

    Args:
        program: The program.
        cards: The cards that were named.
        tools: Those that were named as tools.
        servers: MCP servers the receiver gets.
        receiver: The agent that gets tools and servers; None is the default one.
        multi_card: Whether a file may hold several cards.

    Raises:
        CardError: With every problem of every card.
        ConfigError: With every problem of the configuration.
    """
    found_agents, found_tools, found = found_cards(program, cards, tools)
    if not cards and not found_agents:
        program.agent("agent", default=True)
        if not (tools or found_tools or servers):
            return
    program.load(
        cards=(*cards, *found_agents),
        tools=(*tools, *found_tools),
        servers=servers,
        receiver=receiver,
        multi_card=multi_card,
        found=found,
        optional=found,
    )
    for line in program.admission.decisions.lines():
        report_left_out(line)


def expect_cards(
    program: FastAgent,
    *,
    cards: Sequence[str],
    tools: Sequence[str] = (),
    servers: Sequence[str] = (),
    multi_card: bool = False,
    model: str | None = None,
    receiver: str | None = None,
    shared: Sequence[str] = (),
    reaching: Sequence[str] = (),
) -> None:
    """Read what a command will load, before the configuration next to it is decided about.

    Args:
        program: The program.
        cards: The cards that were named.
        tools: Those that were named as tools.
        servers: MCP servers that were named.
        multi_card: Whether a file may hold several cards.
        model: The model of every agent, or None.
        receiver: The agent that gets tools and servers; None is the default one.
        shared: Options that reach every agent, such as `--shell`.
        reaching: Options that bring the receiver servers: `--stdio NAME`, `--url NAME`.
    """
    found_agents, found_tools, found = found_cards(program, cards, tools)
    program.expect(
        cards=(*cards, *found_agents),
        tools=(*tools, *found_tools),
        servers=[name.strip() for one in servers for name in one.split(",")],
        multi_card=multi_card,
        found=found,
        optional=found,
        model=model,
        receiver=receiver,
        shared=shared,
        reaching=reaching,
    )


def found_cards(
    program: FastAgent, cards: Sequence[str], tools: Sequence[str]
) -> tuple[tuple[Path, ...], tuple[Path, ...], list[Path]]:
    """Return the directories that load automatically: agents, tools, and all found ones."""
    if program.gate.options.without_found:
        return (), (), []
    agents = (*auto_loaded(AGENT_CARDS, program.workspace), *foreign_places(program))
    others = auto_loaded(TOOL_CARDS, program.workspace)
    named = {program.workspace / path for path in (*cards, *tools) if "://" not in path}
    found = [path for path in (*agents, *others) if program.workspace / path not in named]
    return agents, others, found


def foreign_places(program: FastAgent) -> tuple[Path, ...]:
    """Return the directories of agents of other tools, where the user wants these loaded.

    Args:
        program: The program.
    """
    from fast_agent.config.home import FOREIGN_PLACES

    there = tuple([Path(one) for one in FOREIGN_PLACES if (program.workspace / one).is_dir()])
    return there if there and program.configuration.user.foreign_agents is not None else ()


def auto_loaded(directory: Path, workspace: Path) -> tuple[Path, ...]:
    """Return a directory of cards that loads automatically, if it exists and contains cards.

    Args:
        directory: `AGENT_CARDS` or `TOOL_CARDS`.
        workspace: The directory the program works in.

    Returns:
        The directory as a user would name it, or nothing.
    """
    try:
        names = [entry.name.lower() for entry in (workspace / directory).iterdir()]
    except OSError:
        return ()
    from fast_agent.cards.card_files import CARD_SUFFIXES

    held = any(name.endswith(CARD_SUFFIXES) and not name.startswith(".") for name in names)
    return (directory,) if held else ()


def known_servers(program: FastAgent, wanted: Sequence[str]) -> list[str]:
    """Return the servers named by `--servers` that the configuration defines.

    Args:
        program: The program.
        wanted: Names, several in one with commas between.
    """
    return [name for name in _named(wanted) if name in program.server_names]


def check_servers(program: FastAgent, wanted: Sequence[str]) -> None:
    """Check that the configuration defines every server named by `--servers`.

    Raises:
        TrustError: One of them may not act.
        ConfigError: It does not.
    """
    for name in _named(wanted):
        if name not in program.server_names:
            program.admission.decisions.check_server(name)
            near = closest(name, program.server_names)
            raise ConfigError(
                f"--servers names `{name}`, which the configuration does not define",
                hint=did_you_mean(near, "define it under `mcp.servers`"),
            )


def check_model(program: FastAgent, model: str | None) -> None:
    """Check that `--model` names a model, if it is passed.

    Raises:
        TrustError: It goes through a setting of a project that is not approved.
        ModelError: It is none; with every problem.
    """
    if model is None:
        return
    from fast_agent.models.check import check_model as problems_of

    settings = program.settings
    program.admission.check_model(model)
    problems = problems_of(model, settings, os.environ, directory=program.workspace, ready=False)
    if problems:
        first = problems[0]
        raise ModelError(first.message, hint=first.hint, diagnostics=problems)


def report_warnings(
    program: FastAgent, most: int | None = None, cards: Sequence[Path | str] = ()
) -> None:
    """Print the warnings of the configuration and the cards.

    Args:
        program: The program, with its cards loaded.
        most: How many are printed; the others are counted. None prints all.
        cards: The cards that were named, for the command that prints the others.
    """
    notes = (*program.settings.warnings, *program.snapshot.notes)
    warnings = [note for note in notes if note.severity == "warning"]
    if warnings:
        report_diagnostics(warnings[:most])
    program.mark_reported(warnings)
    more = len(warnings[most:]) if most is not None else 0
    if more:
        check = shlex.join(["fast-agent", "check", *map(str, cards)])
        report_note(f"… {more} more: {check}")


def child_history(
    source: HistorySource | None, merge_target: HistoryTarget | None
) -> ChildHistory | None:
    """Return the histories of called agents, if an option sets them."""
    if source is None and merge_target is None:
        return None
    from fast_agent.cards.agent_config import ChildHistory

    return ChildHistory(source=source, merge_target=merge_target)


def session_store(program: FastAgent, *, waits: bool = False) -> SessionStore:
    """Return the store of sessions the configuration names.

    Args:
        program: The program.
        waits: Whether a session in a database that another server uses is waited for, for as long
            as that server may keep it without answering.

    Raises:
        ConfigError: `sessions.url` names a database that cannot be used.
    """
    from fast_agent.config.home import home_directory
    from fast_agent.config.settings import LEASE_SECONDS
    from fast_agent.sessions.store import SessionStore

    settings = program.settings.sessions
    return SessionStore(
        settings.url or home_directory(os.environ),
        disk_seconds=settings.disk_seconds,
        lease_seconds=settings.lease_seconds,
        wait_seconds=(settings.lease_seconds or LEASE_SECONDS) + 1 if waits else 0.0,
        redact=program.redact,
        provenance=program.admission.decisions.provenance,
        steps=partial(_turn_steps, program),
    )


def _turn_steps(program: FastAgent, place: Path | StepRecords) -> ConversationSteps:
    from fast_agent.engine.conversation_steps import ConversationSteps
    from fast_agent.steps.parts import StepRedactor

    return ConversationSteps(place, StepRedactor(program.secrets(), str(program.workspace)))


def _named(wanted: Sequence[str]) -> list[str]:
    names = [name.strip() for one in wanted for name in one.split(",")]
    return [name for name in names if name]


def allowing(texts: Sequence[str]) -> Callable[[RuntimeOptions], RuntimeOptions] | None:
    """Return what gives agents the calls that `--allow` permits; None where there are none.

    Args:
        texts: The patterns.

    Raises:
        ConfigError: One of them is not a pattern of calls.
    """
    if not texts:
        return None
    from fast_agent.tools.allowed_calls import AllowedCalls

    allowed = AllowedCalls.read(texts)
    return lambda options: replace(options, allowed=allowed)
