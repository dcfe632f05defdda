"""All 25 combinations against a model, with failures, time-outs and cancellations anywhere."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.agents.history_world import Episode

from fast_agent.cards.agent_config import HISTORIES

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.agent_config import HistorySource

EPISODES = 6
EPISODES_WITH_FILES = 2
TURNS = 3


@pytest.mark.spec("ROUTE-6", "ROUTE-7")
@pytest.mark.anyio
@pytest.mark.parametrize("target", HISTORIES)
@pytest.mark.parametrize("source", HISTORIES)
async def test_every_history_is_what_the_table_says(
    source: HistorySource, target: HistorySource, tmp_path: Path
) -> None:
    files = "messages" in (source, target)
    for seed in range(EPISODES_WITH_FILES if files else EPISODES):
        episode = Episode(source, target, tmp_path, Random(f"{source} {target} {seed}"))
        problems = await episode.play(TURNS)
        assert problems == [], f"seed {seed}: {problems[0]}"
