"""Which cards a command is to load: those it is told, and those that load by themselves."""

from __future__ import annotations

from pathlib import Path

AGENT_CARDS = Path(".fast-agent/agent-cards")
"""Where a project keeps agents that load by themselves."""

TOOL_CARDS = Path(".fast-agent/tool-cards")
"""Where it keeps those that become tools of the default agent."""


def auto_loaded(directory: Path, workspace: Path) -> tuple[Path, ...]:
    """Give a directory of cards that loads by itself, if it is there and holds cards.

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
