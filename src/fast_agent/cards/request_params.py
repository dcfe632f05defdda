"""Request parameters and usage limits, as cards, configuration and Python give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.text.json_value import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimits:
    """Bounds on what an agent and everything it starts may use; None is no bound.

    Args:
        max_requests: Model requests.
        max_total_tokens: Input and output tokens together.
        max_tool_calls: Tool calls.
    """

    max_requests: int | None = None
    max_total_tokens: int | None = None
    max_tool_calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    usage_limits: UsageLimits | None = None
    extra_body: Mapping[str, JsonValue] | None = None
