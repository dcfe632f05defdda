"""Cards a command loads: those it is passed, and those that load automatically."""

from __future__ import annotations

from pathlib import Path

AGENT_CARDS = Path(".fast-agent/agent-cards")
"""Where a project keeps agents that load automatically."""

TOOL_CARDS = Path(".fast-agent/tool-cards")
"""Where it keeps those that become tools of the default agent."""


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
