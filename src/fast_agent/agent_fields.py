"""The fields of every card type, as the keyword arguments its decorator takes.

Made by docs/generate.py from the table of card fields; change that, not this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fast_agent.cards.agent_config import (
        AgentsAsToolsOptions,
        ChildHistory,
        Compaction,
        FunctionRef,
        McpConnect,
        RequestParams,
    )
    from fast_agent.text.json_value import JsonObject


class AgentFields(TypedDict, total=False):
    """The fields of type `agent`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    model: str | Sequence[str] | None
    """The model, as `provider.name`, an alias or `local`; in a list, the next answers if one
    fails."""
    use_history: bool | None
    """Whether a turn sees earlier turns."""
    trim_tool_history: bool | None
    """Whether the model sees only the last tool call of each earlier turn."""
    compaction: bool | Compaction | Mapping[str, Any] | None
    """When the conversation is summarized to fit the context window; `false` means never."""
    request_params: RequestParams | Mapping[str, Any] | None
    """Parameters of model requests."""
    human_input: bool | None
    """Whether the agent may ask the user."""
    api_key: str | None
    """API key for the model's provider; prefer a `${VARIABLE}`."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    servers: Sequence[str] | None
    """MCP servers of the configuration."""
    tools: Mapping[str, Sequence[str]] | None
    """Per server, the tools allowed, with `*` and `?`."""
    resources: Mapping[str, Sequence[str]] | None
    """Per server, the resources allowed."""
    prompts: Mapping[str, Sequence[str]] | None
    """Per server, the prompts allowed."""
    mcp_connect: (
        Sequence[str | McpConnect | Mapping[str, Any]]
        | Mapping[str, str | McpConnect | Mapping[str, Any]]
        | None
    )
    """MCP servers the card defines: a URL or a command line, or a mapping with `target`; by name or
    in a list."""
    skills: str | Sequence[str] | None
    """Skill directories; unset means the usual ones, an empty list none."""
    resource_tools: bool | None
    """Whether the agent may list and read the packaged documents."""
    function_tools: FunctionRef | Sequence[FunctionRef] | None
    """Python functions offered as tools, as `file.py:name`."""
    tool_hooks: (
        FunctionRef
        | Sequence[FunctionRef]
        | Mapping[str, FunctionRef | Sequence[FunctionRef]]
        | None
    )
    """Functions around every tool call, or functions per hook point."""
    shell: bool | None
    """Whether the agent may run shell commands."""
    files: Literal["read", "write"] | None
    """Whether the agent may `read` files of the workspace, or `write` them too."""
    fetch: bool | None
    """Whether the agent may fetch web pages."""
    cwd: str | None
    """Where its shell commands run."""
    tool_input_schema: JsonObject | None
    """JSON Schema of the arguments when the agent is a tool; without it, one `message`."""
    agents: Sequence[str] | None
    """The agents it may call."""
    history_source: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """What called agents start with."""
    history_merge_target: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """Where the new messages of called agents go."""
    child_history: Mapping[str, ChildHistory | Mapping[str, Any]] | None
    """Per called agent, its own `source` and `merge_target`."""
    confirm: str | Sequence[str] | None
    """Tools whose every call the user must approve, by name, with `*` and `?`."""
    max_parallel: int | None
    """Maximum number of called agents running at the same time."""
    child_timeout_sec: float | None
    """Timeout of a called agent, in seconds."""
    max_display_instances: int | None
    """How many runs of called agents are shown in full."""
    queue: str | None
    """The workers that run its steps on Temporal, by the name of their queue."""
    agents_as_tools_options: AgentsAsToolsOptions | None
    """The fields on children as one value; single ones go before it."""


class ChainFields(TypedDict, total=False):
    """The fields of type `chain`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    sequence: Required[Sequence[str]]
    """The agents, in order."""
    cumulative: bool | None
    """Whether each agent sees the request and every answer so far."""
    continue_with_final: bool | None
    """Whether the conversation continues with the last agent of the chain."""


class ParallelFields(TypedDict, total=False):
    """The fields of type `parallel`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    fan_out: Required[Sequence[str]]
    """The agents that run at the same time."""
    fan_in: str | None
    """The agent that joins the answers."""
    include_request: bool | None
    """Whether `fan_in` also receives the request."""


class EvaluatorOptimizerFields(TypedDict, total=False):
    """The fields of type `evaluator_optimizer`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    generator: Required[str]
    """The agent that writes."""
    evaluator: Required[str]
    """The agent that rates."""
    min_rating: Literal["POOR", "FAIR", "GOOD", "EXCELLENT"] | None
    """The rating that is good enough."""
    max_refinements: int | None
    """Maximum number of rewrites."""
    refinement_instruction: str | None
    """The instruction for a rewrite."""


class RouterFields(TypedDict, total=False):
    """The fields of type `router`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    model: str | Sequence[str] | None
    """The model, as `provider.name`, an alias or `local`; in a list, the next answers if one
    fails."""
    use_history: bool | None
    """Whether a turn sees earlier turns."""
    request_params: RequestParams | Mapping[str, Any] | None
    """Parameters of model requests."""
    human_input: bool | None
    """Whether the agent may ask the user."""
    api_key: str | None
    """API key for the model's provider; prefer a `${VARIABLE}`."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    servers: Sequence[str] | None
    """MCP servers of the configuration."""
    tools: Mapping[str, Sequence[str]] | None
    """Per server, the tools allowed, with `*` and `?`."""
    resources: Mapping[str, Sequence[str]] | None
    """Per server, the resources allowed."""
    prompts: Mapping[str, Sequence[str]] | None
    """Per server, the prompts allowed."""
    agents: Required[Sequence[str]]
    """The agents it may call."""
    hand_off: bool | None
    """Whether the chosen agent receives what was said to the router before."""


class OrchestratorFields(TypedDict, total=False):
    """The fields of type `orchestrator`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    model: str | Sequence[str] | None
    """The model, as `provider.name`, an alias or `local`; in a list, the next answers if one
    fails."""
    use_history: bool | None
    """Whether a turn sees earlier turns."""
    request_params: RequestParams | Mapping[str, Any] | None
    """Parameters of model requests."""
    human_input: bool | None
    """Whether the agent may ask the user."""
    api_key: str | None
    """API key for the model's provider; prefer a `${VARIABLE}`."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    agents: Required[Sequence[str]]
    """The agents it may call."""
    history_source: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """What called agents start with."""
    history_merge_target: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """Where the new messages of called agents go."""
    child_history: Mapping[str, ChildHistory | Mapping[str, Any]] | None
    """Per called agent, its own `source` and `merge_target`."""
    plan_type: Literal["full", "iterative"] | None
    """The whole plan first, or step by step."""
    plan_iterations: int | None
    """Maximum number of plans; -1 means no limit."""
    agents_as_tools_options: AgentsAsToolsOptions | None
    """The fields on children as one value; single ones go before it."""


class IterativePlannerFields(TypedDict, total=False):
    """The fields of type `iterative_planner`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    model: str | Sequence[str] | None
    """The model, as `provider.name`, an alias or `local`; in a list, the next answers if one
    fails."""
    request_params: RequestParams | Mapping[str, Any] | None
    """Parameters of model requests."""
    api_key: str | None
    """API key for the model's provider; prefer a `${VARIABLE}`."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    agents: Required[Sequence[str]]
    """The agents it may call."""
    history_source: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """What called agents start with."""
    history_merge_target: Literal["none", "messages", "child", "orchestrator", "cumulative"] | None
    """Where the new messages of called agents go."""
    child_history: Mapping[str, ChildHistory | Mapping[str, Any]] | None
    """Per called agent, its own `source` and `merge_target`."""
    plan_iterations: int | None
    """Maximum number of plans; -1 means no limit."""
    agents_as_tools_options: AgentsAsToolsOptions | None
    """The fields on children as one value; single ones go before it."""


class MakerFields(TypedDict, total=False):
    """The fields of type `MAKER`, in addition to name and instruction."""

    description: str | None
    """What the agent is for, shown where it is offered as a tool."""
    default: bool | None
    """Whether a conversation starts with this agent."""
    tool_only: bool | None
    """Whether the agent is only a tool for others: not listed, never the default."""
    messages: str | Sequence[str] | None
    """History files the agent starts with."""
    worker: Required[str]
    """The agent that is asked repeatedly."""
    k: int | Literal["auto"] | None
    """By how many votes an answer must lead; `auto` measures it."""
    max_samples: int | None
    """Maximum number of answers."""
    match_strategy: Literal["exact", "normalized", "structured"] | None
    """When two answers count as the same."""
    red_flag_max_length: int | None
    """Answers longer than this many characters are discarded."""
    steps: int | None
    """Number of such steps in the whole task, for `k: auto`."""
    target_success: float | None
    """Probability that all of them are right, for `k: auto`."""
    calibration_samples: int | None
    """Number of answers that `k: auto` measures; default: 20, and up to 100 for many steps."""
