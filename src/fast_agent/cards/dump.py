"""Agents written back as cards: Markdown or YAML, with nothing lost and nothing frozen."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.cards.body import check_body
from fast_agent.cards.card_files import is_configuration, is_skill
from fast_agent.cards.directory_writer import name_problems, write_directory
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.dump_problem import DumpProblem, refuse
from fast_agent.cards.field_values import Moved, field_values
from fast_agent.cards.findings import Findings
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics import dump_rules
from fast_agent.errors import CardError
from fast_agent.text.environment import escape
from fast_agent.text.source import Source
from fast_agent.text.suggestion import closest
from fast_agent.text.yaml_writer import UnwritableValueError, write_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.text.json_value import JsonObject

CardFormat: TypeAlias = Literal["markdown", "yaml"]

SUFFIXES: Mapping[CardFormat, tuple[str, ...]] = MappingProxyType(
    {"markdown": (".md", ".markdown"), "yaml": (".yaml", ".yml")}
)
"""The suffixes of each format, in lower case, the one a dump gives first."""


def dump_card(
    config: AgentConfig,
    card_format: CardFormat = "markdown",
    *,
    directory: Path | None = None,
    written: JsonObject | None = None,
    base: Path | None = None,
) -> str:
    """Write an agent as the text of a card.

    Fields with their default value are left out, `${VARIABLES}` and `{{placeholders}}` stay as
    they are written, and relative paths are rewritten to lead to the same files.

    Args:
        config: The agent.
        card_format: Markdown with the instruction as body, or YAML.
        directory: Where the card will stand; None for the directory it has now.
        written: The values of its card before variables were replaced; None for an agent made
            in Python.
        base: Where relative paths of an agent without a file start.

    Returns:
        The text of the card, with a final line end.

    Raises:
        CardError: Something in the agent cannot be said in a card.
    """
    text, problems = _card_text(config, card_format, directory, written, base)
    refuse(problems)
    return text


def dump_one(
    load_set: LoadSet,
    name: str,
    file: Path,
    card_format: CardFormat = "markdown",
    *,
    base: Path | None = None,
) -> Path:
    """Write one agent to a file.

    Args:
        load_set: The set it is in.
        name: The agent.
        file: The file, whose suffix fits the format; its directory is made when missing.
        card_format: Markdown or YAML.
        base: Where relative paths of an agent without a file start.

    Returns:
        The file.

    Raises:
        CardError: There is no such agent, the file would be no card, the agent cannot be said in
            a card, or the file cannot be written. Nothing was written.
    """
    card = load_set.cards.get(name)
    if card is None:
        near = closest(name, load_set.cards)
        raise CardError(
            f"there is no agent `{name}`",
            hint=f"did you mean `{near}`?" if near else None,
        )
    refuse(_file_name_problems(file.name, card_format))
    text, problems = _card_text(card.config, card_format, file.parent, card.written, base)
    refuse(problems)
    return write_directory(file.parent, {file.name: text.encode()})[0]


def dump_set(
    load_set: LoadSet,
    directory: Path,
    card_format: CardFormat = "markdown",
    *,
    base: Path | None = None,
) -> list[Path]:
    """Write every agent of a set into a directory, each to a file called as the agent.

    Args:
        load_set: The agents.
        directory: Where to write; made when missing, not a symbolic link.
        card_format: Markdown or YAML.
        base: Where relative paths of an agent without a file start.

    Returns:
        The files, in load order.

    Raises:
        CardError: Any agent cannot be written; the diagnostics hold all reasons. Nothing was
            written.
    """
    suffix = SUFFIXES[card_format][0]
    files: dict[str, bytes] = {}
    problems: list[DumpProblem] = []
    taken: dict[str, str] = {}
    for name, card in load_set.cards.items():
        file_name = f"{name}{suffix}"
        text, found = _card_text(card.config, card_format, directory, card.written, base)
        problems += _file_name_problems(file_name, card_format) or found
        other = taken.setdefault(_folded(file_name), name)
        if other != name:
            problems.append(
                DumpProblem(
                    dump_rules.DUMP_FILE_COLLISION,
                    f"`{other}` and `{name}` would be dumped to one file, `{file_name}`",
                    "rename one of them",
                    card.path,
                )
            )
        if not found:
            files[file_name] = text.encode()
    refuse(problems)
    return write_directory(directory, files)


def _card_text(
    config: AgentConfig,
    card_format: CardFormat,
    directory: Path | None,
    written: JsonObject | None,
    base: Path | None,
) -> tuple[str, list[DumpProblem]]:
    before = config.directory or base
    moved = Moved(before, directory or before or Path())
    values, problems = field_values(config, written=written, moved=moved)
    if problems:
        return "", problems
    try:
        text = _text(config, values, card_format)
        return text, [] if written is not None else _value_problems(config, values)
    except UnwritableValueError as error:
        message = f"`{config.name}` holds {error}, which no card can hold"
        return "", [DumpProblem(dump_rules.DUMP_VALUE, message, "replace it", _path(config))]


def _text(config: AgentConfig, values: JsonObject, card_format: CardFormat) -> str:
    body = None
    if card_format == "markdown" and (body := _body(config, values)) is not None:
        values = {name: value for name, value in values.items() if name != "instruction"}
    fields = write_yaml(values)
    return fields if card_format == "yaml" else f"---\n{fields}---\n{body or ''}"


def _body(config: AgentConfig, values: JsonObject) -> str | None:
    """Write the instruction as a body; None where a body would not give it back exactly."""
    instruction = config.instruction
    if not instruction or values.get("instruction") != escape(instruction):
        return None  # there is none, or it holds variables, which a body does not replace
    for body in (f"{instruction}\n", f"---SYSTEM\n{instruction}\n"):
        if _reads_back(body, instruction):
            return body
    return None


def _reads_back(body: str, instruction: str) -> bool:
    if "\r" in body:
        return False
    reading = read_markdown(Source("", f"---\n---\n{body}"), multi_card=True)
    if len(reading.documents) != 1 or reading.diagnostics:
        return False
    document = reading.documents[0]
    findings = Findings(document)
    check_body(document, findings)
    return not findings.errors and document.instruction() == instruction


def _value_problems(config: AgentConfig, values: JsonObject) -> list[DumpProblem]:
    """Find values of an agent made in Python that a card may not have."""
    reading = read_yaml(Source("", write_yaml(values)), multi_card=True)
    if reading.diagnostics or not reading.documents:
        return []
    _, found = validate_card(reading.documents[0], Origin(config.name), {})
    return [
        DumpProblem(
            dump_rules.DUMP_VALUE,
            f"`{config.name}` could not be loaded again: {one.message}",
            one.hint or "change the value",
        )
        for one in found
        if one.severity == "error"
    ]


def _file_name_problems(name: str, card_format: CardFormat) -> list[DumpProblem]:
    if problems := name_problems(name):
        return problems
    if not name.lower().endswith(SUFFIXES[card_format]):
        what = "Markdown" if card_format == "markdown" else "YAML"
        message = f"`{name}` does not end as a {what} card does"
        hint = f"let it end in {' or '.join(f'`{one}`' for one in SUFFIXES[card_format])}"
        return [DumpProblem(dump_rules.DUMP_FILE_NAME, message, hint)]
    if is_skill(name) or is_configuration(name):
        message = f"`{name}` is never loaded as a card"
        return [DumpProblem(dump_rules.DUMP_FILE_NAME, message, "rename the agent")]
    return []


def _folded(name: str) -> str:
    """Fold a file name as file systems without case or with Unicode normalisation do."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _path(config: AgentConfig) -> str:
    return str(config.source or "")
