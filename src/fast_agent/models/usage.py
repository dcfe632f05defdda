"""Counts of what requests used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


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
        nanodollars: Price of the requests whose price is known, in billionths of a US dollar.
        priced: Model requests whose price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    nanodollars: int = 0
    priced: int = 0

    @property
    def cost(self) -> float | None:
        """Price in US dollars; None where the price of some request is not known."""
        return self.nanodollars / 1e9 if self.priced and self.priced == self.requests else None

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
            self.nanodollars + other.nanodollars,
            self.priced + other.priced,
        )


@frozen
class ContextUse:
    """How full the context window of a model was at its last answer.

    Args:
        used: Tokens of the request and its answer together, as the model counted them.
        window: Tokens the window holds, or None where that is not known.
    """

    used: int
    window: int | None = None

    @property
    def share(self) -> float | None:
        """The part of the window that is used, from 0 to 1; None where the window is not known."""
        return None if not self.window else self.used / self.window

    def to_json(self) -> JsonObject:
        """Return it as a JSON object."""
        share = self.share
        return {
            "used": self.used,
            "window": self.window,
            "share": None if share is None else round(share, 4),
        }


ONE_REQUEST = Usage(requests=1)
"""A request whose tokens were not counted."""
