"""Budget: meters that count what is used, and refuse what would exceed a limit.

Every agent instance has a meter, every turn has one. A turn charges its own, its agent's, and those
of everything above it, so that a limit holds for an agent and all it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import LimitError
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from fast_agent.cards.request_params import UsageLimits


class Meter:
    """A count of what something used, with the limits that hold for it.

    Args:
        owner: The agent, for messages.
        limits: Its limits, or None.
    """

    __slots__ = (
        "_cache_read_tokens",
        "_cache_write_tokens",
        "_input_tokens",
        "_output_tokens",
        "_requests",
        "_tool_calls",
        "limits",
        "owner",
    )

    def __init__(self, owner: str, limits: UsageLimits | None = None) -> None:
        self.owner = owner
        self.limits = limits
        self._input_tokens = 0
        self._output_tokens = 0
        self._cache_read_tokens = 0
        self._cache_write_tokens = 0
        self._requests = 0
        self._tool_calls = 0

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return Usage(
            self._input_tokens,
            self._output_tokens,
            self._cache_read_tokens,
            self._cache_write_tokens,
            self._requests,
            self._tool_calls,
        )

    def check_request(self) -> None:
        """Raise LimitError if one more model request would exceed a limit."""
        limits = self.limits
        if limits is None:
            return
        if limits.max_requests is not None and self._requests >= limits.max_requests:
            raise self._exceeded("max_requests", limits.max_requests)
        tokens = self._input_tokens + self._output_tokens
        if limits.max_total_tokens is not None and tokens >= limits.max_total_tokens:
            raise self._exceeded("max_total_tokens", limits.max_total_tokens)

    def check_tool_call(self) -> None:
        """Raise LimitError if one more tool call would exceed a limit."""
        limits = self.limits
        if limits is None or limits.max_tool_calls is None:
            return
        if self._tool_calls >= limits.max_tool_calls:
            raise self._exceeded("max_tool_calls", limits.max_tool_calls)

    def count_request(self) -> None:
        """Count a model request that is about to be made."""
        self._requests += 1

    def count_tool_call(self) -> None:
        """Count a tool call that is about to be made."""
        self._tool_calls += 1

    def count_answer(self, usage: Usage) -> None:
        """Count what a request used, beyond the request itself."""
        self._input_tokens += usage.input_tokens
        self._output_tokens += usage.output_tokens
        self._cache_read_tokens += usage.cache_read_tokens
        self._cache_write_tokens += usage.cache_write_tokens
        if usage.requests > 1:
            self._requests += usage.requests - 1

    def _exceeded(self, name: str, value: int) -> LimitError:
        return LimitError(
            f"agent `{self.owner}` reached its usage limit `{name}` of {value}",
            hint=f"raise `request_params.usage_limits.{name}` of `{self.owner}`",
        )


class Budget:
    """The meters one turn charges.

    A request or call is counted before it is made: of two that run at the same time and would
    exceed a limit only together, the second is refused.
    """

    __slots__ = ("_limited", "_meters")

    def __init__(self, meters: tuple[Meter, ...]) -> None:
        self._meters = meters
        self._limited = tuple(meter for meter in meters if meter.limits is not None)

    def take_request(self) -> None:
        """Count a model request about to be made.

        Raises:
            LimitError: It would exceed a limit; nothing is counted then.
        """
        for meter in self._limited:
            meter.check_request()
        for meter in self._meters:
            meter.count_request()

    def take_tool_call(self) -> None:
        """Count a tool call about to be made.

        Raises:
            LimitError: It would exceed a limit; nothing is counted then.
        """
        for meter in self._limited:
            meter.check_tool_call()
        for meter in self._meters:
            meter.count_tool_call()

    def settle(self, usage: Usage) -> None:
        """Count what an answered request used."""
        for meter in self._meters:
            meter.count_answer(usage)
