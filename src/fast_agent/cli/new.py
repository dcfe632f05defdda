"""`fast-agent new`."""

from __future__ import annotations

from pathlib import Path

import click

from fast_agent.cli.output import standard_output

_FILES = {
    "assistant.md": """\
---
type: agent
name: assistant
default: true
agents: [summarizer]
function_tools:
  - tools.py:word_count
# model: sonnet            # without one, the small local model answers
# servers: [time]          # MCP servers of fastagent.config.yaml
---
You are a helpful assistant. Answer in two or three sentences. Today is {{currentDate}}.

Count words with the tool instead of guessing, and let `summarizer` shorten long texts.
""",
    "summarizer.md": """\
---
type: agent
name: summarizer
tool_only: true
description: Shortens a text to three sentences.
---
Shorten the text you are given to three sentences. Add nothing that is not in it.
""",
    "tools.py": '''\
"""Functions the assistant may call; hints and docstrings describe them to the model."""


def word_count(text: str) -> int:
    """Count the words of a text.

    Args:
        text: The text to count.
    """
    return len(text.split())
''',
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path("cards"))
def command(directory: Path) -> None:
    """Write a starter set of cards into DIRECTORY (cards/); files that exist stay as they are."""
    from fast_agent.errors import CardError

    there = [name for name in _FILES if (directory / name).exists()]
    if there:
        raise CardError(f"`{directory / there[0]}` exists already", hint="name another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in _FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CardError(f"`{directory}` cannot be written: {error.strerror}") from error
    out = standard_output()
    for name in _FILES:
        out.line(f"wrote {directory / name}")
    out.line("\nNext:")
    out.line(f"  fast-agent check {directory}")
    out.line(f"  fast-agent go --card {directory} --message 'hello'")
