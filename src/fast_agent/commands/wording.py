"""Output of commands: lists, errors and foreign text, as Markdown that reads well unrendered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fast_agent.commands.command import CommandResult
from fast_agent.diagnostics.render_human import render_human
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.errors import FastAgentError

_TICKS = re.compile("`+")
_LONGEST = 160


def listed(lines: Iterable[str]) -> str:
    """Write lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


def short(text: str) -> str:
    """Return foreign text as one bounded line without invisible characters."""
    line = " ".join(text.split())
    return visible(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…")


def many(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an `s`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def fenced(text: str, language: str = "") -> str:
    """Wrap foreign text in a code block whose fence is longer than any in it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(visible(line) for line in text.rstrip().splitlines())
    return f"{fence}{language}\n{shown}\n{fence}"


def failure(error: FastAgentError) -> CommandResult:
    """Report an error, with every problem at its place."""
    if any(problem.path for problem in error.diagnostics):
        return CommandResult(text=fenced(render_human(error.diagnostics)), failed=True)
    text = "\n".join(visible(line) for line in error.message.splitlines())
    if error.hint:
        hint = "\n".join(visible(line) for line in error.hint.splitlines())
        text = f"{text}\nhint: {hint}"
    return CommandResult(text=text, failed=True)
