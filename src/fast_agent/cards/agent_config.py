"""AgentConfig: what every card and every decorator compiles into, with its request parameters."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from fast_agent.text.frozen import frozen, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fast_agent.cards.grant import CardGrant
    from fast_agent.text.json_value import JsonObject, JsonValue


@frozen(kw_only=True)
class UsageLimits:
    """Bounds on what an agent and everything it starts may use; None means no bound.

    Args:
        max_requests: Model requests.
        max_total_tokens: Input and output tokens together.
        max_tool_calls: Tool calls.
        max_cost: Price of the model requests, in US dollars.
    """

    max_requests: int | None = None
    max_total_tokens: int | None = None
    max_tool_calls: int | None = None
    max_cost: float | None = None

    def over(self, lower: UsageLimits) -> UsageLimits:
        """Return these limits, with those of `lower` where these are unset."""
        return UsageLimits(
            max_requests=lower.max_requests if self.max_requests is None else self.max_requests,
            max_total_tokens=(
                lower.max_total_tokens if self.max_total_tokens is None else self.max_total_tokens
            ),
            max_tool_calls=(
                lower.max_tool_calls if self.max_tool_calls is None else self.max_tool_calls
            ),
            max_cost=lower.max_cost if self.max_cost is None else self.max_cost,
        )


@frozen(kw_only=True)
class RequestParams:
    """Parameters of model requests; None leaves the model's or the runtime's own default.

    Args:
        max_tokens: Most tokens of one answer.
        temperature: Sampling temperature, from 0.
        top_p: Nucleus sampling, above 0 up to 1.
        top_k: Most likely tokens to sample from, from 1.
        seed: Seed of the sampling.
        stop_sequences: Texts that end an answer.
        presence_penalty: From -2 to 2.
        frequency_penalty: From -2 to 2.
        max_iterations: Most model requests of one turn.
        parallel_tool_calls: Run the tool calls of one response concurrently.
        timeout_seconds: Longest wait for one model request, in seconds.
        retries: Most times a failed model request is sent again; 0 for never.
        retry_seconds: Most seconds one request waits between its attempts, all in all.
        tool_result_bytes: Most bytes of text of one tool result a model is given; a mapping has
            one for each tool, by name or pattern, and the first that fits holds.
        web_search: Let the model search the web, at its provider.
        web_fetch: Let the model read web pages, at its provider.
        code_execution: Let the model run code, at its provider.
        usage_limits: Bounds for the agent and everything it starts.
        extra_body: Fields sent to the provider as they are.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_iterations: int | None = None
    parallel_tool_calls: bool | None = None
    timeout_seconds: float | None = None
    retries: int | None = None
    retry_seconds: float | None = None
    tool_result_bytes: int | Mapping[str, int] | None = None
    web_search: bool | None = None
    web_fetch: bool | None = None
    code_execution: bool | None = None
    usage_limits: UsageLimits | None = None
    extra_body: Mapping[str, JsonValue] | None = None

    def over(self, lower: RequestParams) -> RequestParams:
        """Return these parameters, with those of `lower` where these are unset.

        `usage_limits` and `extra_body` are merged key by key.
        """
        if lower is NO_PARAMS or lower == NO_PARAMS:
            return self
        if self is NO_PARAMS or self == NO_PARAMS:
            return lower
        unset = {
            name: value
            for name in _NAMES
            if getattr(self, name) is None and (value := getattr(lower, name)) is not None
        }
        merged = replace(self, **unset)
        if self.usage_limits is not None and lower.usage_limits is not None:
            merged = replace(merged, usage_limits=self.usage_limits.over(lower.usage_limits))
        if self.extra_body is not None and lower.extra_body is not None:
            merged = replace(merged, extra_body={**lower.extra_body, **self.extra_body})
        return merged


NO_PARAMS: Final = RequestParams()
"""Parameters of which none is set."""
_NAMES: Final = tuple(item.name for item in fields(RequestParams))

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
    """What the found set of the card may do; None for a card a user named, which may do all."""

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
