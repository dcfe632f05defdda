"""Request parameters and usage limits, as set in cards, configuration and Python."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.text.json_value import JsonValue


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
