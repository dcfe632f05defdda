"""AgentsAsToolsOptions: how an agent made in Python calls others, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import HistorySource, HistoryTarget


@dataclass(frozen=True, slots=True)
class AgentsAsToolsOptions:
    """Fields of a card that say how its agent calls others; several agents may share one value.

    What a decorator is given beside it goes before it.

    Args:
        history_source: What called agents start with.
        history_merge_target: Where their new messages go.
        max_parallel: Most called agents at work at once; None is no limit.
        child_timeout_sec: Longest run of a called agent, in seconds; None is no limit.
        max_display_instances: How many runs are shown in full; None leaves the usual number.
    """

    history_source: HistorySource = "none"
    history_merge_target: HistoryTarget = "none"
    max_parallel: int | None = None
    child_timeout_sec: float | None = None
    max_display_instances: int | None = None
