"""From the agents of all files to one set of cards that agree with each other."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.cards.document import read_markdown
from fast_agent.cards.fields import FIELD_NAMED, FIELDS, FIELDS_OF
from fast_agent.cards.placeholder import PROJECT_FILES
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics import rules
from fast_agent.formats.draft import Draft
from fast_agent.text.environment import VariableNames
from fast_agent.text.environment import escape as escape_variables
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import folded_name
from fast_agent.text.source import Source
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from fast_agent.cards.document import CardDocument
    from fast_agent.formats.foreign import Keys
    from fast_agent.formats.reading import ForeignAgents
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.span import Span

_BAD_NAME = re.compile(r"[/\\\x00-\x1f\x7f]+")
_BAD_FILE = re.compile(r'[<>:"|?*\s]+')
_MAX_NAME = 100
_MAX_CALLED = 16
"""Most agents that "all agents" is written out as."""

_SKILL_PLACES: Final = (
    ".claude/skills",
    ".agents/skills",
    ".github/skills",
    ".gemini/skills",
    ".opencode/skills",
    ".codex/skills",
    "skills",
)
_ORDER: Final = {item.name: number for number, item in enumerate(FIELDS)}
_SERVER_FIELDS: Final = ("tools", "mcpServers", "mcp-servers", "mcp_servers", "toolsets")
_LITERAL: Final = frozenset({"mcp_connect"})
"""Fields in which `${NAME}` means a variable."""


@dataclass(slots=True)
class ImportedCard:
    """A card made of an agent of another tool.

    Args:
        name: Its name.
        file_name: Its file.
        text: Its text.
        draft: What it was made of.
    """

    name: str
    file_name: str
    text: str
    draft: Draft = field(repr=False)


@frozen(kw_only=True)
class ImportTarget:
    """What cards are imported into.

    Args:
        output: The directory of the cards.
        project: The directory the other tools were used in.
        servers: The MCP servers that can be named.
        taken: Names of existing cards, none of which is written again.
        has_default: Whether a card that is there is the default one.
    """

    output: Path
    project: Path
    servers: Collection[str] = ()
    taken: Collection[str] = ()
    has_default: bool = False


def assemble(files: Sequence[ForeignAgents], target: ImportTarget) -> list[ImportedCard]:
    """Make cards of the agents of some files.

    Args:
        files: The files. What becomes of the values that only all files together decide about, such
            as names of agents, is put down in them.
        target: Where the cards go, and what is there already.

    Returns:
        The cards, each valid on its own and in the set.
    """
    drafts = [draft for one in files for draft in one.drafts]
    drafts += _chains(files)
    _join_tasks(drafts)
    names = _Names(target.taken)
    for draft in drafts:
        names.give(draft)
    _choose_first(drafts, has_default=target.has_default)
    for draft in drafts:
        _resolve_servers(draft, target)
        _resolve_skills(draft, target)
        draft.finish_tools()
    _resolve_agents(drafts)
    return [_card(draft, names, target) for draft in drafts]


def _chains(files: Sequence[ForeignAgents]) -> list[Draft]:
    """Make a chain of the tasks of each file of CrewAI."""
    chains: list[Draft] = []
    for one in files:
        tasks = [draft for draft in one.drafts if draft.instruction.startswith("Your task: ")]
        if one.file.format == "crewai" and tasks:
            chain = Draft(one.file, name="crew", sequence=tasks, is_first=True)
            chain.values |= {"type": "chain", "cumulative": True}
            chain.values["description"] = "Does the tasks of the crew one after the other."
            chains.append(chain)
    return chains


def _join_tasks(drafts: Sequence[Draft]) -> None:
    """Prepend the instruction of its agent to that of each task."""
    agents = {draft.name: draft for draft in drafts if draft.worker is None}
    for draft in drafts:
        if draft.worker is None:
            continue
        agent = agents.get(draft.worker)
        if agent is None:
            _lose(draft, f"no agent is named `{draft.worker}` in the files", (*draft.keys, "agent"))
            continue
        draft.instruction = f"{agent.instruction}\n\n{draft.instruction}"
        for name in ("model", "request_params"):
            if name in agent.values:
                draft.values[name] = agent.values[name]


def _lose(draft: Draft, message: str, keys: Keys, hint: str | None = None) -> None:
    draft.file.note(rules.LOST_FIELD, message, keys, hint)


class _Names:
    """Names and file names that are taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._names = {folded_name(name) for name in taken}
        self._files = {folded_name(f"{name}.md") for name in taken}
        self.file_of: dict[int, str] = {}

    def give(self, draft: Draft) -> None:
        """Make the name of a draft valid, and say what changed."""
        was = draft.name
        plain = " ".join(_BAD_NAME.sub("-", was).split()).lstrip(".").strip()[:_MAX_NAME].strip()
        plain = plain or "agent"
        name, file_name, number = plain, "", 1
        while True:
            file_name = file_name_of(name)
            if folded_name(name) not in self._names and folded_name(file_name) not in self._files:
                break
            number += 1
            name = f"{plain}-{number}"
        self._names.add(folded_name(name))
        self._files.add(folded_name(file_name))
        self.file_of[id(draft)] = file_name
        draft.name, draft.former = name, was
        if name != was:
            keys: Keys = (*draft.keys, "name") if "name" in draft.file.values else draft.keys
            why = "another card has its name" if number > 1 else "a card cannot have that name"
            message = f"the agent `{was}` is called `{name}`: {why}"
            draft.file.note(rules.ADAPTED_FIELD, message, keys, None)


def file_name_of(name: str) -> str:
    """Return the name of the file that a card of this name is written to."""
    return f"{_BAD_FILE.sub('-', name)}.md"


def _choose_first(drafts: Sequence[Draft], *, has_default: bool) -> None:
    first: Draft | None = None
    for draft in drafts:
        if draft.is_card and draft.values.get("default") is True:
            draft.is_first = True
            del draft.values["default"]
        if not draft.is_first or draft.values.get("tool_only") is True:
            continue
        if first is None and not has_default:
            first = draft
            draft.values["default"] = True
            continue
        chosen = f"`{first.name}` is" if first is not None else "an existing card is"
        draft.file.note(
            rules.ADAPTED_FIELD,
            f"`{draft.name}` is not the default agent, because {chosen}",
            draft.keys,
            f"start with `fast-agent go --agent '{draft.name}'`",
        )


def _resolve_servers(draft: Draft, target: ImportTarget) -> None:
    _find_tool_sets(draft, target)
    named: list[JsonValue] = []
    patterns: dict[str, JsonValue] = {}
    for name, tools in draft.servers.items():
        server = _match(name, {*target.servers, *draft.own_servers})
        if server is None:
            _lose(
                draft,
                f"no MCP server `{name}` is described in the files",
                _server_keys(draft, name),
                f"describe it under `mcp.servers.{name}` of the configuration, and write"
                f" `servers: [{name}]` in the card",
            )
            continue
        if server not in draft.own_servers:
            named.append(server)
        if tools and "*" not in tools:
            patterns[server] = [*dict.fromkeys(tools)]
    if draft.is_card:
        return
    if named:
        draft.values["servers"] = named
    if patterns:
        draft.values["tools"] = patterns


def _find_tool_sets(draft: Draft, target: ImportTarget) -> None:
    """Read an unknown tool that has the name of a server as all tools of the server."""
    for name, keys, unknown in draft.unknown_tools:
        server = _match(name, {*target.servers, *draft.own_servers})
        if server is None:
            _lose(draft, unknown.message, keys, unknown.hint)
        else:
            draft.servers.setdefault(server, ["*"])


def _server_keys(draft: Draft, server: str) -> Keys:
    """Return the field that names a server."""
    values = draft.file.fields(draft.keys).values
    fields = [name for name in _SERVER_FIELDS if name in values]
    naming = [name for name in fields if _slug(server) in _slug(str(values[name]))]
    return (*draft.keys, *(naming or fields)[:1])


def _match(name: str, known: Collection[str]) -> str | None:
    plain = _slug(name)
    return next((one for one in sorted(known) if _slug(one) == plain), None)


def _slug(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-")


def _resolve_skills(draft: Draft, target: ImportTarget) -> None:
    found: list[JsonValue] = []
    for name, keys in draft.skills:
        places = (target.project / place / name for place in _SKILL_PLACES)
        directory = next((place for place in places if (place / "SKILL.md").is_file()), None)
        if directory is None:
            hint = "name its directory under `skills` in the card"
            _lose(draft, f"no skill `{name}` is found next to the agents", keys, hint)
        else:
            found.append(Path(os.path.relpath(directory, target.output)).as_posix())
    if found:
        draft.values["skills"] = found
        note = "skills are loaded when a task calls for them, not at the start"
        draft.file.note(rules.ADAPTED_FIELD, note, draft.skills[0][1], None)


def _resolve_agents(drafts: Sequence[Draft]) -> None:
    """Turn names of agents into references that lead somewhere and in no circle."""
    by_name: dict[str, Draft] = {}
    for draft in drafts:
        by_name.setdefault(_slug(draft.former), draft)
    calls: dict[str, set[str]] = {}
    for draft in drafts:
        calls[draft.name] = set()
        if draft.sequence:
            draft.values["sequence"] = [one.name for one in draft.sequence]
            calls[draft.name] = {one.name for one in draft.sequence}
    for draft in drafts:
        chosen: dict[str, None] = {}
        for name, keys in () if draft.is_card else draft.agents:
            if name == "*":
                _call_all(draft, drafts, keys, chosen, calls)
            else:
                _call_one(draft, by_name.get(_slug(name)), name, keys, calls, chosen)
        if chosen:
            draft.values["agents"] = [*chosen]


def _call_one(
    draft: Draft,
    other: Draft | None,
    name: str,
    keys: Keys,
    calls: dict[str, set[str]],
    chosen: dict[str, None],
) -> None:
    if other is None:
        hint = "import its file too, and name it under `agents`"
        _lose(draft, f"no agent is named `{name}` in the files", keys, hint)
    elif other is draft or _reaches(calls, other.name, draft.name):
        _lose(
            draft,
            f"`{name}` leads back to `{draft.name}`; agents of cards call in one direction",
            keys,
            "write a card of type `smart`, which may start copies of itself",
        )
    else:
        chosen[other.name] = None
        calls[draft.name].add(other.name)


def _call_all(
    draft: Draft,
    drafts: Sequence[Draft],
    keys: Keys,
    chosen: dict[str, None],
    calls: dict[str, set[str]],
) -> None:
    others = [
        one
        for one in drafts
        if one is not draft
        and not one.is_hidden
        and not one.agents
        and one.values.get("type", "agent") == "agent"
        and not _reaches(calls, one.name, draft.name)
    ]
    if not others or len(others) > _MAX_CALLED:
        _lose(
            draft,
            "it may call every agent there; a card names the agents it calls",
            keys,
            "write `agents: [...]` in the card, or make it a card of type `smart`",
        )
        return
    for one in others:
        chosen[one.name] = None
        calls[draft.name].add(one.name)
    listed = ", ".join(f"`{one.name}`" for one in others)
    message = f"it may call every agent there; in the card these are {listed}"
    draft.file.note(rules.ADAPTED_FIELD, message, keys, None)


def _reaches(calls: Mapping[str, set[str]], start: str, goal: str) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            waiting += calls.get(name, ())
    return False


def _card(draft: Draft, names: _Names, target: ImportTarget) -> ImportedCard:
    _drop_unknown(draft)
    _move_paths(draft, target)
    _add_prompt_files(draft, target)
    _add_project(draft, target)
    text = card_text(draft)
    wrong = _wrong_fields(text, draft.name)
    while wrong.keys() & draft.values.keys():
        for name, message in wrong.items():
            if draft.values.pop(name, None) is not None:
                _lose(draft, f"`{name}` was left out of the card: {message}", draft.keys)
        text = card_text(draft)
        wrong = _wrong_fields(text, draft.name)
    return ImportedCard(draft.name, names.file_of[id(draft)], text, draft)


def _drop_unknown(draft: Draft) -> None:
    """Leave out fields that the type of the card does not have."""
    kind = str(draft.values.get("type", "agent"))
    own = next((fields for name, fields in FIELDS_OF.items() if name == kind), FIELD_NAMED)
    for name in [name for name in draft.values if name not in own]:
        del draft.values[name]
        _lose(draft, f"a card has no `{name}`, which this agent needs", draft.keys)


def _move_paths(draft: Draft, target: ImportTarget) -> None:
    """Make the paths of a card lead from its new directory to where they led."""
    beside = os.path.dirname(draft.file.path)  # noqa: PTH120 - joined as text below
    for name in draft.values if draft.is_card else ():
        holds = FIELD_NAMED[name].holds
        if holds not in {"path", "function"}:
            continue
        old = draft.values[name]
        moved = _moved(old, beside, target.output, is_function=holds == "function")
        if moved != old:
            draft.values[name] = moved
            note = f"the paths of `{name}` start at the new place of the card"
            draft.file.note(rules.ADAPTED_FIELD, note, (*draft.keys, name), None)


def _moved(value: JsonValue, beside: str, output: Path, *, is_function: bool) -> JsonValue:
    if isinstance(value, list | tuple):
        return [_moved(item, beside, output, is_function=is_function) for item in value]
    if isinstance(value, Mapping):
        return {
            key: _moved(item, beside, output, is_function=is_function)
            for key, item in value.items()
        }
    if not isinstance(value, str) or value.startswith(("/", "~", "$")) or "://" in value:
        return value
    path, colon, function = value.rpartition(":") if is_function else (value, "", "")
    way = os.path.relpath(os.path.join(beside, path), output)  # noqa: PTH118 - text, as written
    return value if way == os.path.normpath(path) else f"{Path(way).as_posix()}{colon}{function}"


def _add_prompt_files(draft: Draft, target: ImportTarget) -> None:
    beside = Path(draft.file.path).parent
    for name, keys in draft.prompt_files:
        path = beside / name
        inside = path.resolve().is_relative_to(target.project.resolve())
        if inside and path.is_file() and "}" not in name:
            place = path.resolve().relative_to(target.project.resolve()).as_posix()
            draft.appended.append(f"{{{{file:{place}}}}}")
        else:
            _lose(draft, f"`{name}` is not a file of the project", keys, "write `{{file:PATH}}`")


def _add_project(draft: Draft, target: ImportTarget) -> None:
    """Add the instructions of its project to an agent whose tool does so, if there are any."""
    there = [name for name in PROJECT_FILES if (target.project / name).is_file()]
    if draft.has_project and there:
        draft.appended.append("{{projectInstructions}}")
        message = (
            f"its tool gives it `{there[0]}` too; in the card it is `{{{{projectInstructions}}}}`"
        )
        draft.file.note(rules.ADAPTED_FIELD, message, draft.keys, "leave the placeholder out")


def card_text(draft: Draft) -> str:
    """Write the card of a draft.

    Args:
        draft: The agent, with all references resolved.

    Returns:
        A Markdown card, whose body is the instruction where a body can hold it.
    """
    values: dict[str, JsonValue] = {"type": "agent", "name": draft.name}
    for name in sorted(draft.values, key=lambda name: _ORDER.get(name, len(_ORDER))):
        value = draft.values[name]
        kept = draft.is_card or name in _LITERAL
        values[name] = value if kept else _escaped(value)
    values["name"] = draft.name if draft.is_card else _escaped(draft.name)
    instruction = (
        draft.instruction.strip("\n") if draft.is_card else _without_placeholders(draft.instruction)
    )
    if draft.appended:
        parts = [instruction, *draft.appended]
        instruction = "\n\n".join(part for part in parts if part.strip())
    if not instruction.strip():
        if values["type"] in {"chain", "parallel", "evaluator_optimizer", "MAKER"}:
            return f"---\n{draft.comment}{write_yaml(values)}---\n"
        instruction = "You are a helpful agent."
        draft.file.note(
            rules.ADAPTED_FIELD,
            "the agent has no instruction; the card has a plain one",
            draft.keys,
            "write one as the body of the card",
        )
    if "\n---" in f"\n{instruction}" and not _is_body(instruction):
        values["instruction"] = instruction if draft.is_card else escape_variables(instruction)
        return f"---\n{draft.comment}{write_yaml(values)}---\n"
    return f"---\n{draft.comment}{write_yaml(values)}---\n{instruction}\n"


def _without_placeholders(text: str) -> str:
    r"""Escape a string so that nothing in it is a placeholder: `{{` as `\{{`."""
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines).replace("{{", "\\{{")


def _escaped(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return escape_variables(value)
    if isinstance(value, Mapping):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value


def _is_body(instruction: str) -> bool:
    """Whether a body restores a text that has lines of dashes."""
    source = Source("", f"---\n{{}}\n---\n{instruction}\n")
    reading = read_markdown(source, multi_card=True)
    if len(reading.documents) != 1 or reading.documents[0].instruction() != instruction:
        return False
    return not _wrong_fields(source.text, "body")


def _wrong_fields(text: str, name: str) -> dict[str, str]:
    """Return the fields of a card with an error, each with its message."""
    documents = read_markdown(Source("", text), multi_card=True).documents
    if len(documents) != 1:
        return {"": "it reads as several cards"}
    _, found = validate_card(documents[0], Origin(name), _EveryVariable({}))
    errors = [one for one in found if one.severity == "error"]
    return {_field_at(documents[0], one.span): one.message for one in errors}


def _field_at(document: CardDocument, span: Span | None) -> str:
    values = document.yaml.value
    if span is None or not isinstance(values, Mapping):
        return ""
    starts = [(document.yaml.span_of((key,), key=True).start, key) for key in values]
    before = [key for start, key in sorted(starts) if start <= span.start]
    return before[-1] if before else ""


class _EveryVariable(VariableNames):
    """An environment in which every variable is set."""

    def __getitem__(self, name: str) -> str:
        """Return the variable as it is written."""
        return f"${{{name}}}"
