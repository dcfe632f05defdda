"""Cards a command loads: those it is passed, and those that load automatically."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.app import FastAgent

AGENT_CARDS = Path(".fast-agent/agent-cards")
"""Where a project keeps agents that load automatically."""

TOOL_CARDS = Path(".fast-agent/tool-cards")
"""Where it keeps those that become tools of the default agent."""


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
