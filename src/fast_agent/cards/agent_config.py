"""AgentConfig: what every card and every decorator compiles into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from fast_agent.text.frozen import frozen, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fast_agent.cards.grant import CardGrant
    from fast_agent.cards.request_params import RequestParams
    from fast_agent.text.json_value import JsonObject

CardType: TypeAlias = Literal[
    "agent",
    "smart",
    "chain",
    "parallel",
    "evaluator_optimizer",
    "router",
    "orchestrator",
    "iterative_planner",
    "MAKER",
]

HistorySource: TypeAlias = Literal["none", "messages", "child", "orchestrator", "cumulative"]
HistoryTarget: TypeAlias = HistorySource

HISTORIES: tuple[HistorySource, ...] = get_args(HistorySource)
"""The words of `history_source` and `history_merge_target`."""

FunctionRef: TypeAlias = "str | Callable[..., Any]"
"""A function: `file.py:name` relative to the card, or from Python the callable itself."""

FileAccess: TypeAlias = Literal["read", "write"]
"""What an agent may do with the files of the workspace."""

HookPoint: TypeAlias = Literal[
    "before_llm_call",
    "after_llm_call",
    "before_tool_call",
    "after_tool_call",
    "after_turn_complete",
]


@frozen(kw_only=True)
class ChildHistory:
    """History routing of one child; None takes the parent's setting."""

    source: HistorySource | None = None
    merge_target: HistoryTarget | None = None


NO_OVERRIDES = ChildHistory()
"""Leaves source and merge target to the next level of precedence."""


@frozen(kw_only=True)
class Compaction:
    """When and by whom a conversation that fills the context window is summarized.

    Args:
        share: The part of the window, above 0 up to 1, at which that is done; None is the default.
        agent: The agent that writes the summary; None is the agent's own model.
        native: Whether the provider's own compact form is used instead, where it has one and no
            `agent` is named.
    """

    share: float | None = None
    agent: str | None = None
    native: bool = True


@frozen(kw_only=True)
class McpConnect:
    """An MCP server a card brings itself.

    Args:
        target: A URL, or a command line as one string.
        name: The server's name; None derives one from the target.
        headers: HTTP headers, for a URL.
        env: Environment variables added, for a command.
    """

    target: str
    name: str | None = None
    headers: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None


@frozen(kw_only=True)
class AgentConfig:
    """One agent, whatever its type; fields another type owns keep their default.

    Field meanings are those of the AgentCard field table (`cards/fields.py`), where each is
    described once. `None` means unset; an empty tuple is an explicit empty list.
    """

    name: str
    type: CardType = "agent"
    instruction: str | None = None
    description: str | None = None
    default: bool = False
    tool_only: bool = False
    schema_version: int = 1

    model: str | tuple[str, ...] | None = None
    use_history: bool | None = None
    trim_tool_history: bool = False
    compaction: Compaction | bool | None = None
    request_params: RequestParams | None = None
    human_input: bool = False
    api_key: str | None = None
    messages: tuple[str, ...] = ()

    servers: tuple[str, ...] = ()
    tools: Mapping[str, tuple[str, ...]] | None = None
    resources: Mapping[str, tuple[str, ...]] | None = None
    prompts: Mapping[str, tuple[str, ...]] | None = None
    mcp_connect: tuple[McpConnect, ...] = ()
    skills: tuple[str, ...] | None = None
    resource_tools: bool = False
    function_tools: tuple[FunctionRef, ...] = ()
    tool_hooks: tuple[FunctionRef, ...] | Mapping[HookPoint, tuple[FunctionRef, ...]] = ()
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    cwd: str | None = None
    tool_input_schema: JsonObject | None = None
    confirm: tuple[str, ...] = ()

    agents: tuple[str, ...] = ()
    history_source: HistorySource = "none"
    history_merge_target: HistoryTarget = "none"
    child_history: Mapping[str, ChildHistory] | None = None
    max_parallel: int | None = None
    child_timeout_sec: float | None = None
    max_display_instances: int = 20
    queue: str | None = None

    hand_off: bool = False

    sequence: tuple[str, ...] = ()
    cumulative: bool = False
    continue_with_final: bool = True

    fan_out: tuple[str, ...] = ()
    fan_in: str | None = None
    include_request: bool = True

    generator: str | None = None
    evaluator: str | None = None
    min_rating: Literal["POOR", "FAIR", "GOOD", "EXCELLENT"] = "GOOD"
    max_refinements: int = 3
    refinement_instruction: str | None = None

    plan_type: Literal["full", "iterative"] = "full"
    plan_iterations: int | None = None

    worker: str | None = None
    k: int | Literal["auto"] = 3
    max_samples: int = 50
    match_strategy: Literal["exact", "normalized", "structured"] = "exact"
    red_flag_max_length: int | None = None
    steps: int = 1
    target_success: float = 0.95
    calibration_samples: int | None = None

    source: Path | None = None
    """The card's file, absolute; None for a decorator or a remote card."""
    remote: str | None = None
    """The address a remote card came from; None for a local one."""
    grant: CardGrant | None = None
    """What the found set of the card may do; None for a card a person named, which may do all."""

    def with_grant(self, grant: CardGrant) -> AgentConfig:
        """Return a copy with another grant."""
        return replaced(self, grant=grant)

    @property
    def model_text(self) -> str | None:
        """The model as a string: a spec, or several separated by commas; None if unset."""
        return ", ".join(self.model) if isinstance(self.model, tuple) else self.model

    @property
    def directory(self) -> Path | None:
        """The directory relative paths of this card start from; None where it has no file."""
        return None if self.source is None else self.source.parent

    @property
    def brings_code(self) -> bool:
        """Whether running this card runs code or commands that come with it."""
        # An address has it in its first word; the arguments of a command may be addresses.
        commands = any(
            "://" not in server.target.strip().partition(" ")[0] for server in self.mcp_connect
        )
        return bool(self.function_tools or self.tool_hooks or self.shell or commands)


@frozen
class AgentsAsToolsOptions:
    """Fields of a card that say how its agent calls others; several agents may share one value.

    Options of the decorator take precedence over it.

    Args:
        history_source: What called agents start with.
        history_merge_target: Where their new messages go.
        max_parallel: Maximum number of agents called at once; None means no limit.
        child_timeout_sec: Maximum run time of a called agent in seconds; None means no limit.
        max_display_instances: How many runs are shown in full; None leaves the usual number.
    """

    history_source: HistorySource = "none"
    history_merge_target: HistoryTarget = "none"
    max_parallel: int | None = None
    child_timeout_sec: float | None = None
    max_display_instances: int | None = None
