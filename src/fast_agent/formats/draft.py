"""A card in the making: what one agent of another tool becomes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fast_agent.config.providers import EFFORTS, PROVIDERS
from fast_agent.diagnostics import rules
from fast_agent.errors import ModelError
from fast_agent.formats.tools import UnsupportedTool, ability_of
from fast_agent.models.spec import parse_model_spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.formats.foreign import Fields, ForeignFile, Keys
    from fast_agent.formats.tools import Ability
    from fast_agent.text.json_value import JsonValue

ToolChoice: TypeAlias = Literal["none", "files", "all"]
"""What an agent gets that names no tools, and so had every tool of its tool."""

_GIVEN: dict[ToolChoice, frozenset[Ability]] = {
    "none": frozenset(),
    "files": frozenset({"read", "write"}),
    "all": frozenset({"read", "write", "shell", "fetch"}),
}


@dataclass(slots=True)
class Draft:
    """What one agent becomes.

    Args:
        file: The file it is in.
        keys: Where it stands in the file.
        name: Its name there.
        former: Its name there, where the card has another.
        instruction: Its instruction, as plain text.
        values: The fields of the card, without its name and instruction.
        abilities: What its tools let it do.
        servers: By MCP server it uses, the tools it may use; empty for all of them.
        own_servers: Servers its own file brings.
        unknown_tools: Tools it names that are none here, unless a server has the name.
        agents: Agents it may call, each with the place that says so; `*` is all.
        skills: Skills it names, each with the place that says so.
        comment: A line above the fields of the card; empty for none.
        appended: Paragraphs with placeholders that follow the instruction.
        prompt_files: Files whose text follows it, each with the place that says so.
        worker: The agent whose instruction goes before its own, or None.
        sequence: The agents a chain asks in order.
        is_card: Whether its instruction has placeholders of cards, which stay.
        is_first: Whether its tool talks to it first.
        is_open: Whether it named no tools, and so had all.
        is_hidden: Whether other agents may not call it on their own initiative.
        has_project: Whether its tool adds the instructions of the project.
    """

    file: ForeignFile
    keys: Keys = ()
    name: str = ""
    former: str = ""
    instruction: str = ""
    values: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    abilities: set[Ability] = field(default_factory=set["Ability"])
    servers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    own_servers: set[str] = field(default_factory=set[str])
    unknown_tools: list[tuple[str, Keys, UnsupportedTool]] = field(
        default_factory=list[tuple[str, "Keys", UnsupportedTool]]
    )
    agents: list[tuple[str, Keys]] = field(default_factory=list[tuple[str, "Keys"]])
    skills: list[tuple[str, Keys]] = field(default_factory=list[tuple[str, "Keys"]])
    comment: str = ""
    appended: list[str] = field(default_factory=list[str])
    prompt_files: list[tuple[str, Keys]] = field(default_factory=list[tuple[str, "Keys"]])
    worker: str | None = None
    sequence: list[Draft] = field(default_factory=list["Draft"])
    is_card: bool = False
    is_first: bool = False
    is_open: bool = False
    is_hidden: bool = False
    has_project: bool = False

    def describe(self, fields: Fields, *names: str) -> None:
        """Take the description."""
        for name in names:
            text = fields.text(name)
            if text is not None:
                self.values["description"] = text

    def take_model(self, fields: Fields, name: str = "model", effort: str | None = None) -> None:
        """Take the model, and the reasoning effort that goes with it."""
        if isinstance(fields.values.get(name), list | tuple):
            names = fields.words(name) or []
        else:
            only = fields.text(name)
            names = [] if only is None else [only]
        level = fields.text(effort) if effort is not None else None
        if not names:
            if level is not None and effort is not None:
                fields.lost(
                    effort,
                    f"`{effort}: {level}` needs a model to belong to",
                    f"write `model: NAME.{level}` in the card",
                )
            return
        specs: list[JsonValue] = []
        takes_effort = True
        for one in names:
            model = card_model(one, level)
            takes_effort = takes_effort and model.has_effort
            if model.problem is not None:
                fields.lost(name, model.problem, model.hint)
            elif model.note is not None:
                fields.adapted(name, model.note, model.hint)
            if model.spec is not None and model.spec not in specs:
                specs.append(model.spec)
        if specs:
            # In both tools, the next model of a list answers where one fails.
            self.values["model"] = specs if len(specs) > 1 else specs[0]
        if level is not None and effort is not None and not takes_effort:
            fields.lost(
                effort,
                f"`{effort}: {level}` does not go with the model of the card",
                "write `model: NAME.high`, with one of the levels a model has",
            )

    def request(self, fields: Fields, name: str, parameter: str, *, above: float | None) -> None:
        """Take a number as a request parameter."""
        number = fields.number(name, above=above)
        if number is None:
            return
        if parameter == "max_iterations":
            number = int(number)
        if parameter == "top_p" and number > 1:
            fields.lost(name, f"`{name}: {number}` is above 1", "use a number up to 1")
            return
        params = self.values.setdefault("request_params", dict[str, "JsonValue"]())
        if isinstance(params, dict):
            params[parameter] = number

    def take_tools(self, names: Iterable[str], keys: Keys, family: str) -> None:
        """Take the tools an agent names.

        Args:
            names: The tools, as its tool calls them.
            keys: Where they are named.
            family: Whose names they are.
        """
        for name in names:
            tool = ability_of(name, family)
            if isinstance(tool, UnsupportedTool) and tool.is_unknown:
                self.unknown_tools.append((name, keys, tool))
                continue
            if isinstance(tool, UnsupportedTool):
                self.file.note(rules.LOST_FIELD, tool.message, keys, tool.hint)
                continue
            self.abilities |= tool.abilities
            if tool.server is not None:
                self.servers.setdefault(tool.server, []).append(tool.pattern)
            self.agents += [(agent, keys) for agent in tool.agents]
            if tool.note is not None:
                self.file.note(rules.ADAPTED_FIELD, tool.note, keys, None)

    def deny(self, names: Iterable[str], keys: Keys, family: str) -> None:
        """Take tools away again."""
        for name in names:
            tool = ability_of(name, family)
            if isinstance(tool, UnsupportedTool):
                continue  # what the agent does not have need not be taken away
            if tool.server is not None:
                self.file.note(
                    rules.LOST_FIELD,
                    f"`{name}` is denied there; a card lists the tools of a server it allows",
                    keys,
                    f"write `tools: {{{tool.server}: [...]}}` with those the agent may use",
                )
            elif tool.note is not None:
                self.file.note(
                    rules.LOST_FIELD,
                    f"`{name}` denies some calls of a tool, and a card allows a tool or does not",
                    keys,
                    "write `confirm: [execute]` to be asked before each command",
                )
            else:
                self.abilities -= tool.abilities

    def open(self, choice: ToolChoice, what: str) -> None:
        """Add the tools chosen for agents that name none."""
        self.is_open = True
        self.comment = f"# named no tools, which were all there; imported with --tools {choice}\n"
        self.abilities |= _GIVEN[choice]
        given = {
            "none": "the card has none",
            "files": "the card may read and edit files",
            "all": "the card has files, shell and fetch",
        }[choice]
        self.file.note(
            rules.OPEN_TOOLS,
            f"{what} has every tool there; {given}",
            (*self.keys, "name") if self.keys == () and "name" in self.file.values else self.keys,
            "`--tools none|files|all` chooses for all such agents",
        )

    def finish_tools(self) -> None:
        """Write what the tools let the agent do into the fields of the card."""
        if "write" in self.abilities:
            self.values["files"] = "write"
        elif "read" in self.abilities:
            self.values["files"] = "read"
        if "shell" in self.abilities:
            self.values["shell"] = True
        if "fetch" in self.abilities:
            self.values["fetch"] = True
        if "ask" in self.abilities:
            self.values["human_input"] = True


_NO_CHOICE = frozenset({"inherit", "auto", "default", "inherited", "auto (copilot)"})
_PROVIDER = {
    "amazon-bedrock": "bedrock",
    "aws-bedrock": "bedrock",
    "gemini": "google",
    "google-vertex": "vertex",
    "vertexai": "vertex",
    "vertex_ai": "vertex",
    "x-ai": "xai",
    "dmr": "generic",
    "huggingface": "hf",
    "github-copilot": None,
    "opencode": None,
}
"""Providers under other names; None for those that only pass other models on."""

_LARGE = "[1m]"
_VERSION = re.compile(r"(?<=\d)\.(?=\d)")
_EFFORT_WORDS = {"max": "xhigh", "minimum": "minimal"}


class CardModel(NamedTuple):
    """A model as a card names it.

    Args:
        spec: The model; None for the one of the configuration.
        note: What is different, or None.
        problem: Why there is none, or None.
        hint: What to do.
        has_effort: Whether the reasoning effort is part of it.
    """

    spec: str | None
    note: str | None = None
    problem: str | None = None
    hint: str | None = None
    has_effort: bool = True


@cache
def card_model(name: str, effort: str | None = None) -> CardModel:
    """Find what a card calls a model.

    Args:
        name: Such as `sonnet`, `anthropic/claude-sonnet-4-5`, `Claude Sonnet 4.5 (copilot)`.
        effort: Its reasoning effort, or None.

    Returns:
        The model.
    """
    if name.lower() in _NO_CHOICE:
        note = f"`{name}` leaves the model to the configuration, as a card without `model` does"
        return CardModel(None, note=note, has_effort=effort is None)
    level = None if effort is None else _EFFORT_WORDS.get(effort, effort)
    for spec in _spellings(name):
        plain, mark, query = spec.partition("?")
        thorough = f"{plain}.{level}{mark}{query}"
        if level is not None and level in EFFORTS and _is_known(thorough):
            return CardModel(thorough, _changed(name, thorough))
        if _is_known(spec):
            return CardModel(spec, _changed(name, spec), has_effort=level is None)
    return CardModel(
        None,
        problem=f"there is no model `{name}`",
        hint="write `model: PROVIDER.NAME` in the card; `fast-agent models` lists providers",
        has_effort=effort is None,
    )


def _changed(name: str, spec: str) -> str | None:
    return None if name == spec else f"the model `{name}` is `{spec}` in a card"


def _spellings(name: str) -> list[str]:
    plain = re.sub(r"\s*\([^)]*\)\s*$", "", name).strip()
    if plain.endswith(_LARGE):  # Claude Code writes the large window so
        return [f"{one}?context=1m" for one in _spellings(plain.removesuffix(_LARGE))]
    found: list[str] = []
    if "/" in plain:
        first, _, rest = plain.partition("/")
        provider = _PROVIDER.get(first.lower(), first.lower())
        if provider is None:
            found += _spellings(rest)
        elif provider in PROVIDERS:
            found.append(f"{provider}.{rest}")
    slug = "-".join(plain.lower().split())
    if slug.startswith("claude-"):
        found.append(_VERSION.sub("-", slug))
    found += [plain, slug]
    return list(dict.fromkeys(found))


def _is_known(spec: str) -> bool:
    if not spec or any(character.isspace() for character in spec) or spec.startswith("scripted"):
        return False
    try:
        parse_model_spec(spec)
    except ModelError:
        return False
    return True
