"""The field table: every AgentCard field, once.

The validator, the JSON Schema, the dump and the reference in the docs are made from `FIELDS`.
Add a field here, and to `AgentConfig`, and it exists everywhere.
"""

from __future__ import annotations

from dataclasses import KW_ONLY  # noqa: TC003 (`dataclass` resolves it by its name)
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from fast_agent.cards.agent_config import HISTORIES, CardType, FileAccess, HookPoint
from fast_agent.cards.records import CHILD_HISTORY, COMPACTION, COUNT, MCP_SERVER, REQUEST_PARAMS
from fast_agent.schema.kinds import (
    AnyOf,
    Flag,
    FunctionName,
    Integer,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Text,
)
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.schema.kinds import Effects, Kind
    from fast_agent.text.json_value import JsonValue

CARD_TYPES: tuple[CardType, ...] = get_args(CardType)
"""The card types, in the order they are listed to people."""

HIGHEST_SCHEMA_VERSION = 1
"""The newest `schema_version` this program reads."""

HISTORY_MODES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"scratch": ("none", "none"), "fork": ("child", "none"), "fork_and_merge": ("child", "child")}
)
"""The deprecated `history_mode` words, as (`history_source`, `history_merge_target`)."""

Holds: TypeAlias = Literal["card", "server", "path", "function"]


@frozen
class Field:
    """One field of a card.

    Args:
        name: Its name in cards and in `AgentConfig`.
        kind: What it may hold.
        types: The card types that have it.
        doc: One line about it.
        effects: What it can make a found card do; `()` means none. There is no default, so that a
            field that declares nothing does not get past the build.
        default: Its value where it is not given; None is unset.
        default_of: Defaults that differ by type.
        required: Types on which it must be given; a list must then have an item.
        holds: What its texts name: cards, servers, files relative to the card, `file:function`.
        remote: Whether a card loaded from a web address may use it.
        deprecated: What to write instead, or None. A deprecated field is not in `AgentConfig`.
    """

    name: str
    kind: Kind
    types: frozenset[CardType]
    doc: str
    _: KW_ONLY
    effects: Effects
    default: JsonValue = None
    default_of: tuple[tuple[CardType, JsonValue], ...] = ()
    required: frozenset[CardType] = frozenset()
    holds: Holds | None = None
    remote: bool = True
    deprecated: str | None = None

    def default_for(self, card_type: CardType) -> JsonValue:
        """Return the value of the field on a card of this type that does not set it.

        Args:
            card_type: The type of the card.

        Returns:
            The default; None where the field is then unset.
        """
        return next((value for name, value in self.default_of if name == card_type), self.default)


def _types(*names: CardType) -> frozenset[CardType]:
    return frozenset(names)


_ALL = _types(*CARD_TYPES)
_AGENT = _types("agent", "smart")
_PLANNERS = _types("orchestrator", "iterative_planner")
_WITH_SERVERS = _AGENT | _types("router")
_WITH_HISTORY = _WITH_SERVERS | _types("orchestrator")
_WITH_MODEL = _WITH_HISTORY | _types("iterative_planner")
_CALLING_CHILDREN = _AGENT | _PLANNERS

_NAMES = ListOf(Text())
_PATTERNS = MapOf(ListOf(Text()))
_FUNCTIONS = ListOf(FunctionName(), single=True)
_HOOKS = AnyOf((_FUNCTIONS, MapOf(_FUNCTIONS, keys=get_args(HookPoint))))

FIELDS: tuple[Field, ...] = (
    Field(
        "type", OneOf(CARD_TYPES), _ALL, "what the card makes", effects=("write",), default="agent"
    ),
    Field("name", Text(), _ALL, "the agent's name; defaults to the file's name", effects=()),
    Field(
        "description",
        Text(blank=True),
        _ALL,
        "what the agent is for, shown where it is offered as a tool",
        effects=(),
    ),
    Field(
        "default",
        Flag(),
        _ALL,
        "whether a conversation starts with this agent",
        effects=(),
        default=False,
    ),
    Field(
        "tool_only",
        Flag(),
        _ALL,
        "whether the agent is only a tool for others: not listed, never the default",
        effects=(),
        default=False,
    ),
    Field(
        "schema_version",
        Integer(minimum=1, maximum=HIGHEST_SCHEMA_VERSION),
        _ALL,
        "version of the card format",
        effects=(),
        default=1,
    ),
    Field(
        "model",
        AnyOf((Text(), _NAMES)),
        _WITH_MODEL,
        "the model, as `provider.name`, an alias or `local`; in a list, the next answers if one"
        " fails",
        effects=("run", "read"),
    ),
    Field(
        "use_history",
        Flag(),
        _WITH_HISTORY,
        "whether a turn sees earlier turns",
        effects=(),
        default=True,
        default_of=(("orchestrator", False),),
    ),
    Field(
        "trim_tool_history",
        Flag(),
        _AGENT,
        "whether the model sees only the last tool call of each earlier turn",
        effects=(),
        default=False,
    ),
    Field(
        "compaction",
        COMPACTION,
        _AGENT,
        "when the conversation is summarized to fit the context window; `false` means never",
        effects=(),
    ),
    Field(
        "request_params", REQUEST_PARAMS, _WITH_MODEL, "parameters of model requests", effects=()
    ),
    Field(
        "human_input",
        Flag(),
        _WITH_HISTORY,
        "whether the agent may ask the user",
        effects=("ease",),
        default=False,
    ),
    Field(
        "api_key",
        Text(),
        _WITH_MODEL,
        "API key for the model's provider; prefer a `${VARIABLE}`",
        effects=("send",),
    ),
    Field(
        "messages",
        ListOf(Text(), single=True),
        _ALL - _types("chain", "parallel"),
        "history files the agent starts with",
        effects=("read", "write"),
        holds="path",
        remote=False,
    ),
    Field(
        "servers",
        _NAMES,
        _WITH_SERVERS,
        "MCP servers of the configuration",
        effects=("use",),
        holds="server",
    ),
    Field(
        "tools",
        _PATTERNS,
        _WITH_SERVERS,
        "per server, the tools allowed, with `*` and `?`",
        effects=(),
    ),
    Field("resources", _PATTERNS, _WITH_SERVERS, "per server, the resources allowed", effects=()),
    Field("prompts", _PATTERNS, _WITH_SERVERS, "per server, the prompts allowed", effects=()),
    Field(
        "mcp_connect",
        AnyOf((ListOf(AnyOf((Text(), MCP_SERVER))), MapOf(AnyOf((Text(), MCP_SERVER))))),
        _AGENT,
        "MCP servers the card defines: a URL or a command line, or a mapping with `target`; by name"
        " or in a list",
        effects=("run", "connect", "send"),
    ),
    Field(
        "skills",
        ListOf(Text(), single=True),
        _AGENT,
        "skill directories; unset means the usual ones, an empty list none",
        effects=("read", "run"),
        holds="path",
    ),
    Field(
        "resource_tools",
        Flag(),
        _AGENT,
        "whether the agent may list and read the packaged documents",
        effects=(),
        default=False,
    ),
    Field(
        "function_tools",
        _FUNCTIONS,
        _AGENT,
        "Python functions offered as tools, as `file.py:name`",
        effects=("run",),
        holds="function",
        remote=False,
    ),
    Field(
        "tool_hooks",
        _HOOKS,
        _AGENT,
        "functions around every tool call, or functions per hook point",
        effects=("run",),
        holds="function",
        remote=False,
    ),
    Field(
        "shell",
        Flag(),
        _AGENT,
        "whether the agent may run shell commands",
        effects=("run",),
        default=False,
        remote=False,
    ),
    Field(
        "files",
        OneOf(get_args(FileAccess)),
        _AGENT,
        "whether the agent may `read` files of the workspace, or `write` them too",
        effects=("read", "write"),
        remote=False,
    ),
    Field(
        "fetch",
        Flag(),
        _AGENT,
        "whether the agent may fetch web pages",
        effects=("connect",),
        default=False,
        remote=False,
    ),
    Field("cwd", Text(), _AGENT, "where its shell commands run", effects=("run",), holds="path"),
    Field(
        "tool_input_schema",
        JsonSchema(),
        _AGENT,
        "JSON Schema of the arguments when the agent is a tool; without it, one `message`",
        effects=(),
    ),
    Field(
        "agents",
        _NAMES,
        _CALLING_CHILDREN | _types("router"),
        "the agents it may call",
        effects=("use",),
        required=_PLANNERS | _types("router"),
        holds="card",
    ),
    Field(
        "hand_off",
        Flag(),
        _types("router"),
        "whether the chosen agent receives what was said to the router before",
        effects=(),
        default=False,
    ),
    Field(
        "history_source",
        OneOf(HISTORIES),
        _CALLING_CHILDREN,
        "what called agents start with",
        effects=(),
        default="none",
    ),
    Field(
        "history_merge_target",
        OneOf(HISTORIES),
        _CALLING_CHILDREN,
        "where the new messages of called agents go",
        effects=("write",),
        default="none",
    ),
    Field(
        "child_history",
        MapOf(CHILD_HISTORY),
        _CALLING_CHILDREN,
        "per called agent, its own `source` and `merge_target`",
        effects=(),
    ),
    Field(
        "history_mode",
        OneOf(tuple(HISTORY_MODES)),
        _AGENT,
        "older spelling of `history_source` and `history_merge_target`",
        effects=(),
        deprecated="`history_source` and `history_merge_target`",
    ),
    Field(
        "confirm",
        ListOf(Text(), single=True),
        _AGENT,
        "tools whose every call the user must approve, by name, with `*` and `?`",
        effects=(),
    ),
    Field(
        "max_parallel",
        COUNT,
        _AGENT,
        "maximum number of called agents running at the same time",
        effects=(),
    ),
    Field(
        "child_timeout_sec",
        Number(above=0),
        _AGENT,
        "timeout of a called agent, in seconds",
        effects=(),
    ),
    Field(
        "max_display_instances",
        Integer(minimum=0),
        _AGENT,
        "how many runs of called agents are shown in full",
        effects=(),
        default=20,
    ),
    Field(
        "queue",
        Text(),
        _AGENT,
        "the workers that run its steps on Temporal, by the name of their queue",
        effects=(),  # what its steps may do is the same everywhere
    ),
    Field(
        "sequence",
        _NAMES,
        _types("chain"),
        "the agents, in order",
        effects=("use",),
        required=_types("chain"),
        holds="card",
    ),
    Field(
        "cumulative",
        Flag(),
        _types("chain"),
        "whether each agent sees the request and every answer so far",
        effects=(),
        default=False,
    ),
    Field(
        "continue_with_final",
        Flag(),
        _types("chain"),
        "whether the conversation continues with the last agent of the chain",
        effects=(),
        default=True,
    ),
    Field(
        "fan_out",
        _NAMES,
        _types("parallel"),
        "the agents that run at the same time",
        effects=("use",),
        required=_types("parallel"),
        holds="card",
    ),
    Field(
        "fan_in",
        Text(),
        _types("parallel"),
        "the agent that joins the answers",
        effects=("use",),
        holds="card",
    ),
    Field(
        "include_request",
        Flag(),
        _types("parallel"),
        "whether `fan_in` also receives the request",
        effects=(),
        default=True,
    ),
    Field(
        "generator",
        Text(),
        _types("evaluator_optimizer"),
        "the agent that writes",
        effects=("use",),
        required=_types("evaluator_optimizer"),
        holds="card",
    ),
    Field(
        "evaluator",
        Text(),
        _types("evaluator_optimizer"),
        "the agent that rates",
        effects=("use",),
        required=_types("evaluator_optimizer"),
        holds="card",
    ),
    Field(
        "min_rating",
        OneOf(("POOR", "FAIR", "GOOD", "EXCELLENT")),
        _types("evaluator_optimizer"),
        "the rating that is good enough",
        effects=(),
        default="GOOD",
    ),
    Field(
        "max_refinements",
        Integer(minimum=0),
        _types("evaluator_optimizer"),
        "maximum number of rewrites",
        effects=("ease",),
        default=3,
    ),
    Field(
        "refinement_instruction",
        Text(),
        _types("evaluator_optimizer"),
        "the instruction for a rewrite",
        effects=(),
    ),
    Field(
        "plan_type",
        OneOf(("full", "iterative")),
        _types("orchestrator"),
        "the whole plan first, or step by step",
        effects=(),
        default="full",
    ),
    Field(
        "plan_iterations",
        Integer(minimum=1, also=(-1,)),
        _PLANNERS,
        "maximum number of plans; -1 means no limit",
        effects=("ease",),
        default_of=(("orchestrator", 5), ("iterative_planner", -1)),
    ),
    Field(
        "worker",
        Text(),
        _types("MAKER"),
        "the agent that is asked repeatedly",
        effects=("use",),
        required=_types("MAKER"),
        holds="card",
    ),
    Field(
        "k",
        AnyOf((COUNT, OneOf(("auto",)))),
        _types("MAKER"),
        "by how many votes an answer must lead; `auto` measures it",
        effects=(),
        default=3,
    ),
    Field(
        "max_samples",
        COUNT,
        _types("MAKER"),
        "maximum number of answers",
        effects=("ease",),
        default=50,
    ),
    Field(
        "match_strategy",
        OneOf(("exact", "normalized", "structured")),
        _types("MAKER"),
        "when two answers count as the same",
        effects=(),
        default="exact",
    ),
    Field(
        "red_flag_max_length",
        COUNT,
        _types("MAKER"),
        "answers longer than this many characters are discarded",
        effects=(),
    ),
    Field(
        "steps",
        COUNT,
        _types("MAKER"),
        "number of such steps in the whole task, for `k: auto`",
        effects=(),
        default=1,
    ),
    Field(
        "target_success",
        Number(above=0, below=1),
        _types("MAKER"),
        "probability that all of them are right, for `k: auto`",
        effects=(),
        default=0.95,
    ),
    Field(
        "calibration_samples",
        COUNT,
        _types("MAKER"),
        "number of answers that `k: auto` measures; default: 20, and up to 100 for many steps",
        effects=("ease",),
    ),
    Field(
        "instruction",
        Text(),
        _ALL,
        "the system prompt; or write it as the body of a Markdown card",
        effects=("read", "connect"),
        required=_WITH_MODEL,
    ),
)
"""Every field, in dump order."""

FIELD_NAMED: Mapping[str, Field] = MappingProxyType({item.name: item for item in FIELDS})
"""Every field by its name."""

FIELDS_OF: Mapping[CardType, Mapping[str, Field]] = MappingProxyType(
    {
        card_type: MappingProxyType({item.name: item for item in FIELDS if card_type in item.types})
        for card_type in CARD_TYPES
    }
)
"""The fields each card type has, by name, in dump order."""


def default_of(name: str, card_type: CardType) -> JsonValue:
    """Return the value of a field on a card that does not set it.

    Args:
        name: The field.
        card_type: The type of the card.

    Returns:
        The default; None if the field is then unset, or the name is not a field.
    """
    return next((field.default_for(card_type) for field in FIELDS if field.name == name), None)


_ADDRESS: Final = (
    "it reaches an agent at an address",
    "write `function_tools: [file.py:name]` with a function that asks it",
)

PEER_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "subagents": ("agents it starts automatically", "write `agents`, or a card of type `smart`"),
    "subagent_model": ("the model of such agents", "write `model` in their cards"),
    "harness_tools": ("tools of the program", "write `files`, `fetch` and `shell`"),
    "save_trajectory": (
        "it writes what happened",
        "sessions are kept; `fast-agent session export` writes them",
    ),
    "lifecycle_hooks": ("functions around its life", "write `tool_hooks`"),
    "commands": ("short names of messages", "keep such texts as skills, which `/NAME` calls"),
    "variables": ("values for placeholders", "write the values, or `{{file:PATH}}`"),
    **dict.fromkeys(
        (
            "url",
            "transport",
            "streaming",
            "polling",
            "accepted_output_modes",
            "headers",
            "auth",
            "relative_card_path",
            "request_timeout_seconds",
        ),
        _ADDRESS,
    ),
}
"""What each field is there, and what does the same here."""
