"""The fields of an agent as Python gives them to a decorator; `cards/fields.py` tells of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 (a TypedDict may be looked into)
from typing import Any, TypedDict

from fast_agent.cards.agent_config import (  # noqa: TC001
    ChildHistory,
    FunctionRef,
    HistorySource,
)
from fast_agent.cards.agents_as_tools import AgentsAsToolsOptions  # noqa: TC001
from fast_agent.cards.request_params import RequestParams  # noqa: TC001
from fast_agent.text.json_value import JsonObject  # noqa: TC001


class AgentFields(TypedDict, total=False):
    """The fields of the types `agent` and `smart`, beside name and instruction."""

    description: str
    default: bool
    tool_only: bool
    agents: Sequence[str]
    servers: Sequence[str]
    tools: Mapping[str, Sequence[str]]
    resources: Mapping[str, Sequence[str]]
    prompts: Mapping[str, Sequence[str]]
    skills: Sequence[str]
    resource_tools: bool
    model: str
    use_history: bool
    request_params: RequestParams | Mapping[str, Any]
    human_input: bool
    api_key: str
    messages: str | Sequence[str]
    function_tools: Sequence[FunctionRef]
    tool_hooks: Sequence[FunctionRef] | Mapping[str, FunctionRef]
    shell: bool
    cwd: str
    tool_input_schema: JsonObject
    confirm: str | Sequence[str]
    history_source: HistorySource
    history_merge_target: HistorySource
    child_history: Mapping[str, ChildHistory]
    max_parallel: int
    child_timeout_sec: float
    max_display_instances: int
    agents_as_tools_options: AgentsAsToolsOptions


class MemberFields(TypedDict, total=False):
    """The fields every type has, beside name and instruction."""

    description: str
    default: bool
    tool_only: bool


class SeededFields(MemberFields, total=False):
    """Those, and the messages its conversation starts with."""

    messages: str | Sequence[str]


class PlannerFields(SeededFields, total=False):
    """The fields an `iterative_planner` shares with other types."""

    model: str
    request_params: RequestParams | Mapping[str, Any]
    api_key: str
    history_source: HistorySource
    history_merge_target: HistorySource
    child_history: Mapping[str, ChildHistory]
    agents_as_tools_options: AgentsAsToolsOptions


class OrchestratorFields(PlannerFields, total=False):
    """The fields an `orchestrator` shares with other types."""

    use_history: bool
    human_input: bool


class RouterFields(SeededFields, total=False):
    """The fields a `router` shares with other types."""

    servers: Sequence[str]
    tools: Mapping[str, Sequence[str]]
    resources: Mapping[str, Sequence[str]]
    prompts: Mapping[str, Sequence[str]]
    model: str
    use_history: bool
    request_params: RequestParams | Mapping[str, Any]
    human_input: bool
    api_key: str
