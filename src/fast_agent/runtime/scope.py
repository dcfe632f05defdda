"""Scope: where a turn stands in the tree of everything one request set off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.runtime.budget import Meter
    from fast_agent.runtime.events import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a turn inherits from whoever started it.

    Args:
        meters: What to charge besides the turn's and the agent's own.
        listener: Who hears of events, or None.
        depth: How many agents stand above this one.
        parent_call_id: The tool call this turn answers, or None.
        correlation_id: One id for everything a request set off; None makes the turn's id that id.
    """

    meters: tuple[Meter, ...] = ()
    listener: Listener | None = None
    depth: int = 0
    parent_call_id: str | None = None
    correlation_id: str | None = None


TOP = Scope()
"""Where a turn stands that nothing else started."""
