"""Budget: meters that count what is used, and refuse what would exceed a limit.

Every agent instance has a meter, every turn has one. A turn charges its own, its agent's, and those
of everything above it, so that a limit holds for an agent and all it starts.

What a request will use is known only when it is answered. So that requests made at the same time
do not exceed a limit of tokens together, one waits where it would not fit beside those at work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.cards.agent_config import UsageLimits
from fast_agent.errors import LimitError
from fast_agent.models.model import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from anyio import Event

MAX_UNAPPROVED_REQUESTS = 50
"""Maximum number of model requests in one turn of an unapproved found set (TR-E1)."""

SET_ASIDE = 16_384
"""Tokens reserved for a running request; more if one has used more than half of it."""


class Meter:
    """A count of what something used, with the limits that hold for it.

    Args:
        owner: The agent, for messages.
        limits: Its limits, or None.
    """

    __slots__ = (
        "_at_work",
        "_cache_read_tokens",
        "_cache_write_tokens",
        "_dearest",
        "_freed",
        "_input_tokens",
        "_nanodollars",
        "_output_tokens",
        "_priced",
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
        self._nanodollars = 0
        self._priced = 0
        self._at_work = 0
        self._dearest = 0
        self._freed: Event | None = None

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
            self._nanodollars,
            self._priced,
        )

    def count_earlier(self, used: tuple[int, ...]) -> None:
        """Count what was used before, in the order of the counts of `Usage`."""
        before = Usage(*used)
        self._requests += before.requests
        self._tool_calls += before.tool_calls
        self.count_answer(replace(before, requests=0))

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
        if limits.max_cost is not None and self._nanodollars >= limits.max_cost * 1e9:
            raise self._exceeded("max_cost", limits.max_cost)

    def check_tool_call(self) -> None:
        """Raise LimitError if one more tool call would exceed a limit."""
        limits = self.limits
        if limits is None or limits.max_tool_calls is None:
            return
        if self._tool_calls >= limits.max_tool_calls:
            raise self._exceeded("max_tool_calls", limits.max_tool_calls)

    def has_room(self) -> bool:
        """Whether one more request fits under `max_total_tokens` with those running."""
        limits = self.limits
        if limits is None or limits.max_total_tokens is None or self._at_work == 0:
            return True
        reserved = self._at_work * max(SET_ASIDE, 2 * self._dearest)
        return self._input_tokens + self._output_tokens + reserved < limits.max_total_tokens

    async def wait_for_end(self) -> None:
        """Wait until one of the requests at work has ended."""
        if self._freed is None:
            from anyio import Event

            self._freed = Event()
        await self._freed.wait()

    def begin_request(self) -> None:
        """Record a running request."""
        self._at_work += 1

    def end_request(self, usage: Usage | None) -> None:
        """Record the end of a request; `usage` is what it used, None if unknown."""
        self._at_work -= 1
        if usage is not None:
            self._dearest = max(self._dearest, usage.total_tokens)
        if self._freed is not None:
            self._freed.set()
            self._freed = None

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
        if usage.cache_read_tokens or usage.cache_write_tokens:
            self._cache_read_tokens += usage.cache_read_tokens
            self._cache_write_tokens += usage.cache_write_tokens
        if usage.priced:
            self._nanodollars += usage.nanodollars
            self._priced += usage.priced
        if usage.requests > 1:
            self._requests += usage.requests - 1

    def _exceeded(self, name: str, value: float) -> LimitError:
        return LimitError(
            f"agent `{self.owner}` reached its usage limit `{name}` of {value}",
            hint=f"raise `request_params.usage_limits.{name}` of `{self.owner}`",
        )


class UnapprovedTurn(Meter):
    """The meter of a turn of an unapproved found set, with all the turn starts.

    Args:
        owner: The agent the turn began with.
        root: The root of the set.
    """

    __slots__ = ("_root",)

    def __init__(self, owner: str, root: Path) -> None:
        super().__init__(owner, UsageLimits(max_requests=MAX_UNAPPROVED_REQUESTS))
        self._root = root

    def _exceeded(self, name: str, value: float) -> LimitError:
        del name
        return LimitError(
            f"a turn of `{self.owner}` reached {value} model requests,"
            " the most for a project that is not approved",
            hint=f"read it, then `fast-agent trust {self._root}`",
        )


class Budget:
    """The meters one turn charges.

    A request or call is counted before it is made: of two that run at the same time and would
    exceed a limit only together, the second is refused. Tokens are counted after: a request waits
    until it fits beside those at work, so that `max_total_tokens` is passed by the last request
    alone, whatever runs at the same time.
    """

    __slots__ = ("_limited", "_meters", "_of_tokens")

    def __init__(self, meters: tuple[Meter, ...]) -> None:
        self._meters = meters
        self._limited: list[Meter] = []
        self._of_tokens: list[Meter] = []
        for meter in meters:
            if meter.limits is not None:
                self._limited.append(meter)
                if meter.limits.max_total_tokens is not None:
                    self._of_tokens.append(meter)

    @property
    def bounds_tokens(self) -> bool:
        """Whether a request may have to wait for others."""
        return bool(self._of_tokens)

    @property
    def money_bound(self) -> str | None:
        """The agent whose `max_cost` holds for this turn, or None."""
        for meter in self._limited:
            if meter.limits is not None and meter.limits.max_cost is not None:
                return meter.owner
        return None

    async def wait_for_room(self) -> None:
        """Wait until a request fits beside those at work; `take_request` must follow at once.

        Raises:
            LimitError: A limit was reached in the meantime.
        """
        while True:
            for meter in self._limited:
                meter.check_request()
            full = next((meter for meter in self._of_tokens if not meter.has_room()), None)
            if full is None:
                return
            await full.wait_for_end()

    def take_request(self) -> None:
        """Count a model request about to be made; `record_usage` or `give_up` follows.

        Raises:
            LimitError: It would exceed a limit; nothing is counted then.
        """
        for meter in self._limited:
            meter.check_request()
        for meter in self._meters:
            meter.count_request()
        for meter in self._of_tokens:
            meter.begin_request()

    def take_tool_call(self) -> None:
        """Count a tool call about to be made.

        Raises:
            LimitError: It would exceed a limit; nothing is counted then.
        """
        for meter in self._limited:
            meter.check_tool_call()
        for meter in self._meters:
            meter.count_tool_call()

    def record_usage(self, usage: Usage) -> None:
        """Count what an answered request used."""
        for meter in self._meters:
            meter.count_answer(usage)
        for meter in self._of_tokens:
            meter.end_request(usage)

    def give_up(self) -> None:
        """Record that a request ended without an answer."""
        for meter in self._of_tokens:
            meter.end_request(None)
