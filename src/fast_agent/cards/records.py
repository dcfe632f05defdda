"""The sub-tables of cards: values that are themselves mappings with fixed fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.cards.agent_config import (
    HISTORIES,
    ChildHistory,
    Compaction,
    McpConnect,
    RequestParams,
    UsageLimits,
)
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Entry,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

PEER_SERVER_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "auth": ("how it logs in", "`fast-agent auth login SERVER` does, or send a token in `headers`"),
    "access_token": ("a token it sends", "write `headers: {Authorization: Bearer …}`"),
    "management": ("who makes the connection", "leave it out, the agent makes it"),
    "connector_id": ("a server of its provider", "name a server as `target`"),
    "description": ("text for its provider", "leave it out"),
    "defer_loading": ("when it describes tools", "leave it out"),
}
"""Fields of servers in cards of the nearest peer: what each is, and what does the same here."""


def of_peer(what: str, instead: str) -> str:
    """Word the hint on a field of another program.

    Args:
        what: What it is there.
        instead: What does the same here.
    """
    return f"it is a field of another program ({what}): {instead}"


COUNT = Integer(minimum=1)
"""A number of things, at least one."""

RESULT_BYTES = Integer(minimum=1024)
"""Bytes of a tool result: less would not hold what says where the rest is."""

USAGE_LIMITS = Record(
    entries=(
        Entry(
            "max_requests",
            COUNT,
            "maximum number of model requests",
            effects=("ease",),
            spelling="maxRequests",
        ),
        Entry(
            "max_total_tokens",
            COUNT,
            "maximum of input and output tokens together",
            effects=("ease",),
            spelling="maxTotalTokens",
        ),
        Entry(
            "max_tool_calls",
            Integer(minimum=0),
            "maximum number of tool calls",
            effects=("ease",),
            spelling="maxToolCalls",
        ),
        Entry(
            "max_cost",
            Number(above=0),
            "maximum cost of model requests in US dollars; the last request may exceed it",
            effects=("ease",),
            spelling="maxCost",
        ),
    ),
    build=UsageLimits,
)
REQUEST_PARAMS = Record(
    entries=(
        Entry(
            "max_tokens", COUNT, "maximum tokens of one answer", effects=(), spelling="maxTokens"
        ),
        Entry("temperature", Number(minimum=0), "sampling temperature", effects=()),
        Entry("top_p", Number(above=0, maximum=1), "nucleus sampling", effects=(), spelling="topP"),
        Entry(
            "top_k",
            COUNT,
            "number of most likely tokens to sample from",
            effects=(),
            spelling="topK",
        ),
        Entry("seed", Integer(), "seed of the sampling", effects=()),
        Entry(
            "stop_sequences",
            ListOf(Text(blank=True)),
            "strings that end an answer",
            effects=(),
            spelling="stopSequences",
        ),
        Entry(
            "presence_penalty",
            Number(minimum=-2, maximum=2),
            "penalty for words already used",
            effects=(),
            spelling="presencePenalty",
        ),
        Entry(
            "frequency_penalty",
            Number(minimum=-2, maximum=2),
            "penalty for words used often",
            effects=(),
            spelling="frequencyPenalty",
        ),
        Entry(
            "max_iterations",
            COUNT,
            "maximum number of model requests in one turn; default: 99, or 3 for an agent"
            " without tools",
            effects=("ease",),
            spelling="maxIterations",
        ),
        Entry(
            "parallel_tool_calls",
            Flag(),
            "run the tool calls of one response at the same time",
            effects=(),
            spelling="parallelToolCalls",
        ),
        Entry(
            "timeout_seconds",
            Number(above=0),
            "timeout of one model request, in seconds",
            effects=(),
            spelling="timeoutSeconds",
        ),
        Entry(
            "retries",
            Integer(minimum=0),
            "maximum number of retries of a model request; default: 11, or 3 if the"
            " connection fails",
            effects=(),
        ),
        Entry(
            "retry_seconds",
            Number(minimum=0),
            "maximum time one model request waits between retries in all, in seconds; default: 60",
            effects=(),
            spelling="retrySeconds",
        ),
        Entry(
            "tool_result_bytes",
            AnyOf((RESULT_BYTES, MapOf(RESULT_BYTES))),
            "maximum text of one tool result given to the model, in bytes; default: 32768; or a"
            " mapping of tool names or patterns to bytes, of which the first match counts",
            effects=(),
            spelling="toolResultBytes",
        ),
        Entry(
            "web_search",
            Flag(),
            "whether the model may search the web, with the tool of its provider",
            effects=("connect",),
            spelling="webSearch",
        ),
        Entry(
            "web_fetch",
            Flag(),
            "whether the model may read web pages, with the tool of its provider",
            effects=("connect",),
            spelling="webFetch",
        ),
        Entry(
            "code_execution",
            Flag(),
            "whether the model may run code at its provider",
            effects=(),
            spelling="codeExecution",
        ),
        Entry(
            "usage_limits",
            USAGE_LIMITS,
            "bounds for the agent and everything it starts",
            effects=(),
            spelling="usageLimits",
        ),
        Entry(
            "extra_body",
            AnyMapping(),
            "sent to the provider unchanged",
            effects=("send",),
            spelling="extraBody",
        ),
    ),
    build=RequestParams,
)
"""The fields inside `request_params`, for cards and configuration alike."""

COMPACTION = AnyOf(
    (
        Flag(),
        Record(
            entries=(
                Entry(
                    "share",
                    Number(above=0, maximum=1),
                    "the fraction of the context window at which it happens; default: 0.85",
                    effects=(),
                ),
                Entry(
                    "agent",
                    Text(),
                    "the agent that writes the summary; default: the agent's own model",
                    effects=(),
                ),
                Entry(
                    "native",
                    Flag(),
                    "whether the provider's own compact form is used, where it has one; true unless"
                    " said or an agent is named",
                    effects=(),
                ),
            ),
            build=Compaction,
        ),
    )
)
"""When and by whom a conversation is summarized; `false` is never."""

CHILD_HISTORY = Record(
    entries=(
        Entry("source", OneOf(HISTORIES), "what this child starts with", effects=()),
        Entry(
            "merge_target",
            OneOf(HISTORIES),
            "where this child's new messages go",
            effects=("write",),
        ),
    ),
    build=ChildHistory,
)
MCP_SERVER = Record(
    entries=(
        Entry(
            "target", Text(), "a URL, or a command line", effects=("run", "connect"), required=True
        ),
        Entry("name", Text(), "the server's name", effects=()),
        Entry("headers", MapOf(Text(blank=True)), "HTTP headers, for a URL", effects=("send",)),
        Entry(
            "env", MapOf(Text(blank=True)), "environment variables, for a command", effects=("run",)
        ),
    ),
    build=McpConnect,
    others=tuple((name, of_peer(*peer)) for name, peer in PEER_SERVER_FIELDS.items()),
)
