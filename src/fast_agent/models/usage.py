"""Counts of what requests used."""

from __future__ import annotations

from fast_agent.text.frozen import frozen


@frozen
class Usage:
    """Counts; `+` adds them.

    Args:
        input_tokens: Tokens sent, cached ones included.
        output_tokens: Tokens generated.
        cache_read_tokens: Input tokens the provider read from its cache.
        cache_write_tokens: Input tokens the provider wrote to its cache.
        requests: Model requests.
        tool_calls: Tool calls made.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.requests + other.requests,
            self.tool_calls + other.tool_calls,
        )


ONE_REQUEST = Usage(requests=1)
"""A request whose tokens nobody counted."""
