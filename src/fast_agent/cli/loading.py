"""Loading the cards of a command: those it is passed, and those that load automatically."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.cli.output import report_left_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.app import FastAgent

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
    """Return the directories of agents of other tools, where the person wants these loaded.

    Args:
        program: The program.
    """
    from fast_agent.config.home import FOREIGN_PLACES

    there = tuple([Path(one) for one in FOREIGN_PLACES if (program.workspace / one).is_dir()])
    return there if there and program.configuration.person.foreign_agents is not None else ()


def auto_loaded(directory: Path, workspace: Path) -> tuple[Path, ...]:
    """Return a directory of cards that loads automatically, if it exists and contains cards.

    Args:
        directory: `AGENT_CARDS` or `TOOL_CARDS`.
        workspace: The directory the program works in.

    Returns:
        The directory as a person would name it, or nothing.
    """
    from fast_agent.cards.card_files import CARD_SUFFIXES

    try:
        names = [entry.name.lower() for entry in (workspace / directory).iterdir()]
    except OSError:
        return ()
    held = any(name.endswith(CARD_SUFFIXES) and not name.startswith(".") for name in names)
    return (directory,) if held else ()
