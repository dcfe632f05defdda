"""Write the generated references: `python docs/generate.py`, or `--check` that they are fresh.

The card and configuration tables, the rules, the command help, the JSON Schemas and the types of
decorators are made from the code, so that they cannot say anything else than it does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from guide_parts import Parts
from guides import documents
from python_fields import python_fields

from fast_agent.cards.fields import CARD_TYPES, FIELDS
from fast_agent.cards.schema import schema
from fast_agent.cli.command_table import COMMANDS, cli
from fast_agent.commands.table import reference_page
from fast_agent.config.fields import SETTINGS, config_schema
from fast_agent.diagnostics.rulebook import docs_page
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    Integer,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
)
from fast_agent.tui.input.keys import key_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.cards.agent_config import CardType
    from fast_agent.cards.fields import Field
    from fast_agent.schema.kinds import Effects

HERE = Path(__file__).parent / "reference"
PYTHON_FIELDS = Path(__file__).parents[1] / "src/fast_agent/agent_fields.py"
EFFECTS = (
    "`effects` are what a field can make a [found](../trust.md) file do; a `${NAME}` in any field "
    "is also a `send`."
)
KEYS_HEAD = (
    "# Keys\n\nThe keys of [the terminal](../terminal.md); others edit the text as in emacs.\n"
)
NOTE = "<!-- Made by docs/generate.py; change the code it is made from. -->\n\n"


def kind_words(kind: object) -> str:  # noqa: C901 - one case a kind
    """Say in a few words what a field may hold."""
    match kind:
        case Flag():
            return "true or false"
        case Integer(minimum=minimum, maximum=maximum, also=also):
            words = "whole number" + _bounds(minimum, maximum)
            return words + "".join(f" or {value}" for value in also)
        case Number(minimum=minimum, maximum=maximum, above=above, below=below):
            return (
                "number"
                + _bounds(minimum, maximum)
                + (f" above {above:g}" if above is not None else "")
                + (f" below {below:g}" if below is not None else "")
            )
        case OneOf(values):
            return " / ".join(f"`{value}`" for value in values)
        case ListOf(item, single=single):
            return f"list of {kind_words(item)}" + (", or one" if single else "")
        case MapOf(value):
            return f"mapping to {kind_words(value)}"
        case AnyOf(kinds):
            return ", or ".join(kind_words(one) for one in kinds)
        case Record():
            return "mapping (below)"
        case FunctionName():
            return "`file.py:name`"
        case JsonSchema():
            return "JSON Schema"
        case AnyMapping():
            return "mapping"
        case Text():
            return "text"
        case _:
            return "text"


def _bounds(minimum: float | None, maximum: float | None) -> str:
    low = "" if minimum is None else f" from {minimum:g}"
    return low + ("" if maximum is None else f" to {maximum:g}")


def _default(field: Field, card_type: CardType | None = None) -> str:
    """Say what a field is when it is not given, on cards of a type or on any."""
    if card_type is not None:
        value = field.default_for(card_type)
        return "" if value is None else f"`{json.dumps(value)}`"
    if field.required:
        return "required" if field.types == field.required else "required on some"
    usual = [] if field.default is None else [f"`{json.dumps(field.default)}`"]
    return ", ".join(
        [*usual, *(f"`{json.dumps(value)}` for `{one}`" for one, value in field.default_of)]
    )


def cards_page() -> str:
    """Write the table of card fields."""
    lines = [
        "# Card fields",
        "",
        "One row per field; a dot marks the types that have it.",
        EFFECTS,
        "",
    ]
    lines.append("| field | value | default | effects | meaning |")
    lines.append("|---|---|---|---|---|")
    for field in FIELDS:
        doc = field.doc + (f" (deprecated: {field.deprecated})" if field.deprecated else "")
        facts = (kind_words(field.kind), _default(field), _effects(field.effects), doc)
        lines.append(f"| `{field.name}` | {' | '.join(facts)} |")
    lines += ["", "## Which type has which field", ""]
    lines.append("| field | " + " | ".join(f"`{one}`" for one in CARD_TYPES) + " |")
    lines.append("|---|" + "---|" * len(CARD_TYPES))
    for field in FIELDS:
        marks = " | ".join("•" if one in field.types else "" for one in CARD_TYPES)
        lines.append(f"| `{field.name}` | {marks} |")
    for field in FIELDS:
        for title, record in _records(field.kind, field.name):
            lines += ["", f"## `{title}`", "", *_entries(record)]
    return "\n".join(lines) + "\n"


def _entries(record: Record) -> Iterator[str]:
    yield "| key | value | effects | meaning |"
    yield "|---|---|---|---|"
    for entry in record.entries:
        facts = (kind_words(entry.kind), _effects(entry.effects), entry.doc)
        yield f"| `{entry.name}` | {' | '.join(facts)} |"


def _effects(effects: Effects) -> str:
    return ", ".join(f"`{one}`" for one in effects)


def _records(kind: object, name: str) -> Iterator[tuple[str, Record]]:
    match kind:
        case Record(entries=entries):
            yield name, kind
            for entry in entries:
                yield from _records(entry.kind, f"{name}.{entry.name}")
        case AnyOf(kinds):
            for one in kinds:
                yield from _records(one, name)
        case ListOf(item):
            yield from _records(item, f"{name}[]")
        case MapOf(value):
            yield from _records(value, f"{name}.NAME")
        case _:
            pass


def config_page() -> str:
    """Write the tables of the configuration."""
    lines = ["# Configuration keys", "", EFFECTS, ""]
    for title, record in _records(SETTINGS, ""):
        heading = title.removeprefix(".") or "top level"
        lines += [f"## `{heading}`", "", *_entries(record), ""]
    return "\n".join(lines)


def cli_page() -> str:
    """Write the help of every command."""
    root = click.Context(cli, info_name="fast-agent", max_content_width=88, terminal_width=88)
    lines = ["# Commands", "", "```text", cli.get_help(root).rstrip(), "```", ""]
    for name in COMMANDS:
        command = cli.get_command(root, name)
        if command is not None:
            lines += _help(command, name, root)
    return "\n".join(lines)


def _help(command: click.Command, name: str, parent: click.Context) -> list[str]:
    context = click.Context(
        command, info_name=name, parent=parent, max_content_width=88, terminal_width=88
    )
    path = context.command_path
    lines = [f"## `{path}`", "", "```text", command.get_help(context).rstrip(), "```", ""]
    if isinstance(command, click.Group):
        for child in sorted(command.commands):
            lines += _help(command.commands[child], child, context)
    return lines


def files() -> dict[Path, str]:
    """Make every generated file."""
    embedded = {"settings": config_page, "commands": cli_page, "rules": docs_page}
    packaged = documents(Parts(kind_words, _default, _records, embedded).all())
    reference = {HERE / name: text for name, text in pages().items()}
    return reference | packaged | {PYTHON_FIELDS: python_fields()}


def pages() -> dict[str, str]:
    """Make the pages of the reference."""
    return {
        "cards.md": NOTE + cards_page(),
        "configuration.md": NOTE + config_page(),
        "commands.md": NOTE + cli_page(),
        "rules.md": NOTE + docs_page(),
        "slash-commands.md": NOTE + reference_page(),
        "keys.md": "\n".join([f"{NOTE}{KEYS_HEAD}", *key_lines(), ""]),
        "card.schema.json": json.dumps(schema(), indent=2, ensure_ascii=False) + "\n",
        "configuration.schema.json": json.dumps(config_schema(), indent=2, ensure_ascii=False)
        + "\n",
    }


def main() -> None:
    """Write the files, or with `--check` say which are stale."""
    stale: list[str] = []
    for file, text in files().items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            stale.append(file.name)
            if "--check" not in sys.argv:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit(f"stale: {', '.join(stale)}; run `make docs`")
    print("up to date" if not stale else f"wrote {', '.join(stale)}")


if __name__ == "__main__":
    main()
