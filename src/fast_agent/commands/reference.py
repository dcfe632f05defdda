"""The reference of the slash commands, made from their table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.table import COMMANDS, SIGNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.commands.command import Command


def reference_page() -> str:
    """Write the page as Markdown."""
    lines = ["# Slash commands", "", "| command | what it does |", "|---|---|"]
    lines += [_row(f"/{one.usage}", one.summary) for one in COMMANDS.values()]
    lines += [_row(sign, summary) for sign, summary in SIGNS.items()]
    for command in COMMANDS.values():
        lines += _details(command)
    return "\n".join(lines) + "\n"


def _details(command: Command) -> Iterator[str]:
    rows = [_row(one.name, one.summary) for one in command.options]
    for action in command.actions:
        rows.append(_row(f"/{command.name} {action.usage}", action.summary))
        rows += [_row(one.name, one.summary) for one in action.options]
    if rows:
        yield from ("", f"## `/{command.name}`", "", "| part | what it does |", "|---|---|")
        yield from rows


def _row(code: str, text: str) -> str:
    code = code.replace("|", "\\|")
    return f"| `{code}` | {text} |"
