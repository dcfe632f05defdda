"""AgentsAsToolsOptions: how an agent made in Python calls others, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import HistorySource, HistoryTarget


@frozen
class AgentsAsToolsOptions:
    """Fields of a card that say how its agent calls others; several agents may share one value.

    Options of the decorator take precedence over it.

    Args:
        history_source: What called agents start with.
        history_merge_target: Where their new messages go.
        max_parallel: Maximum number of agents called at once; None means no limit.
        child_timeout_sec: Maximum run time of a called agent in seconds; None means no limit.
        max_display_instances: How many runs are shown in full; None leaves the usual number.
    """

    history_source: HistorySource = "none"
    history_merge_target: HistoryTarget = "none"
    max_parallel: int | None = None
    child_timeout_sec: float | None = None
    max_display_instances: int | None = None
