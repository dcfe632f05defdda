"""`fast-agent new`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fast_agent.cli.output import standard_output
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMA: Final = "card.schema.json"
_SCHEMA_LINE: Final = f"# yaml-language-server: $schema={_SCHEMA}"


@frozen
class StarterSet:
    """A set of cards to start with.

    Args:
        about: What it does, for the list.
        message: A first message.
        files: Its files by name.
        wants: The model it wants; None where the small local model does.
        options: Options of `go` in addition to `--card` and `--message`.
    """

    about: str
    message: str
    files: Mapping[str, str]
    wants: str | None = None
    options: str = ""


_TOOLS: Final = "a model that calls tools well, such as `--model sonnet`"
_OBEYS: Final = "a model that follows the requested format, such as `--model haiku`"
_KNOWS: Final = (
    "a model that understands what it reads, such as `--model haiku`: the small local one answers, "
    "and makes things up"
)

SETS: Final[Mapping[str, StarterSet]] = {
    "assistant": StarterSet(
        "answers, reads and edits files, counts words, shortens texts",
        "hello",
        {
            "assistant.md": """\
---
type: agent
name: assistant
default: true
function_tools:
  - tools.py:word_count
files: write
agents: [summarizer]
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
description: Shortens a text to three sentences.
tool_only: true
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
        },
    ),
    "researcher": StarterSet(
        "fetches web pages and writes a report with its sources into a file",
        "Compare https://www.python.org and https://www.rust-lang.org",
        {
            "researcher.md": """\
---
type: agent
name: researcher
default: true
request_params:
  max_iterations: 30
files: write
fetch: true
agents: [critic]
---
You research a question and write the answer down. Today is {{currentDate}}.

1. Fetch the pages that the request names, and those they lead to where you need them.
2. Write `report.md`: the answer first, then what it rests on, each claim with its address.
3. Let `critic` read the report, and put right what it finds.

Never state what no page says. Say what you could not find.
""",
            "critic.md": """\
---
type: agent
name: critic
description: Finds claims of a report that its sources do not carry.
tool_only: true
files: read
fetch: true
---
Read the report you are given. Name each claim that has no source, or whose source does not say it.
Answer `good` where there is none.
""",
        },
        _TOOLS,
    ),
    "support": StarterSet(
        "routes a request to the agent that can answer it, and hands the conversation over",
        "I was charged twice this month",
        {
            "support.md": """\
---
type: router
name: support
default: true
agents: [billing, technical, general]
hand_off: true
---
Choose who answers the customer. Where it is not clear, choose `general`.
""",
            **{
                f"{name}.md": f"""\
---
type: agent
name: {name}
description: {about}
---
You answer customers. {duty} Be brief and friendly. Where you cannot help, say who can.
"""
                for name, about, duty in (
                    ("billing", "Invoices, charges, refunds.", "You know invoices and refunds."),
                    ("technical", "Errors, log-in, settings.", "You solve technical problems."),
                    ("general", "Everything else.", "You answer what no other agent answers."),
                )
            },
        },
        _KNOWS,
    ),
    "extractor": StarterSet(
        "reads facts out of a text and answers as JSON by a schema",
        "ACME Ltd, 3 March 2026: 2 desks, 480 EUR",
        {
            "extractor.md": """\
---
type: agent
name: extractor
default: true
use_history: false
request_params:
  temperature: 0
---
Read the facts out of the text you are given. Invent nothing: what the text does not say is null.
""",
            "invoice.schema.json": json.dumps(
                {
                    "type": "object",
                    "properties": {
                        "company": {"type": "string"},
                        "date": {"type": ["string", "null"], "description": "YYYY-MM-DD"},
                        "total": {"type": ["number", "null"]},
                        "currency": {"type": ["string", "null"]},
                    },
                    "required": ["company", "date", "total", "currency"],
                    "additionalProperties": False,
                },
                indent=2,
            )
            + "\n",
        },
        _KNOWS,
        options="--json-schema {directory}/invoice.schema.json ",
    ),
    "evaluator": StarterSet(
        "writes a text, has it judged, and rewrites it until it is good",
        "A letter that asks a library to open on Sundays",
        {
            "letter.md": """\
---
type: evaluator_optimizer
name: letter
default: true
generator: writer
evaluator: judge
min_rating: GOOD
max_refinements: 3
---
""",
            "writer.md": """\
---
type: agent
name: writer
---
You write letters of at most 150 words. Where you are told what is wrong with one, write it again.
""",
            "judge.md": """\
---
type: agent
name: judge
use_history: false
---
You judge letters: is it clear what is asked, is there a reason, is it polite, is it short?
Name what is to be changed.
""",
        },
        _OBEYS,
    ),
    "maker": StarterSet(
        "asks the same question until one answer leads by three votes (MAKER)",
        "The parcel arrived broken and no one answers the phone",
        {
            "reliable.md": """\
---
type: MAKER
name: reliable
default: true
worker: classifier
k: 3
max_samples: 15
match_strategy: normalized
red_flag_max_length: 20
---
""",
            "classifier.md": """\
---
type: agent
name: classifier
use_history: false
---
Answer with one word for the mood of the text: positive, negative or neutral.
""",
        },
        _OBEYS,
    ),
}


def _list_sets(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    for name, one in SETS.items():
        standard_output().line(f"{name:<12}{one.about}")
    ctx.exit()


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path("cards"))
@click.option(
    "--set",
    "name",
    type=click.Choice([*SETS]),
    default="assistant",
    show_default=True,
    help="Which set.",
)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_sets,
    help="List the sets and exit.",
)  # fmt: skip
def command(directory: Path, name: str) -> None:
    """Write a starter set of cards into DIRECTORY (cards/); files that exist stay as they are."""
    from fast_agent.cards.schema import schema
    from fast_agent.errors import CardError, os_reason

    chosen = SETS[name]
    files = {file: _with_schema(file, text) for file, text in chosen.files.items()}
    files[_SCHEMA] = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    there = [file for file in files if (directory / file).exists()]
    if there:
        raise CardError(f"`{directory / there[0]}` already exists", hint="name another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (directory / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CardError(f"`{directory}` cannot be written: {os_reason(error)}") from error
    out = standard_output()
    for file in files:
        out.line(f"wrote {directory / file}")
    out.line("\nNext:")
    out.line(f"  fast-agent check {directory}")
    options = chosen.options.format(directory=directory)
    out.line(f"  fast-agent go --card {directory} {options}--message '{chosen.message}'")
    if chosen.wants is not None:
        out.line(f"\nThis set wants {chosen.wants}.")
    _offer_found()


def _with_schema(file: str, text: str) -> str:
    """Name the schema in the first line of the frontmatter, for editors."""
    return text.replace("---\n", f"---\n{_SCHEMA_LINE}\n", 1) if file.endswith(".md") else text


def _offer_found() -> None:
    """Report agents of other tools in the working directory, and how to import them."""
    from fast_agent.config.home import FOREIGN_PLACES
    from fast_agent.formats.detection import found_here

    out, places = standard_output(), found_here(Path())
    for place in places:
        out.line(f"\nFound agents of {FOREIGN_PLACES[place]} in {place}; to make cards of them:")
        out.line(f"  fast-agent import {place}")
    if places:
        out.line(f"\nTo use them as they are:\n  fast-agent go --card {places[0]}")
        out.line("`foreign_agents: files` in the configuration of your home always loads them.")
