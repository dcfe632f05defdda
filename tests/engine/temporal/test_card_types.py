"""Every type of card runs in workflow code, and does the same whenever it runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.temporal.temporal_world import temporal_world
from tests.recording.test_replay_of_workflows import CARDS, program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.temporal_server import TemporalServer

pytestmark = pytest.mark.anyio

REPLAYS = 3


@pytest.mark.spec("TEMPORAL-4")
@pytest.mark.parametrize("kind", CARDS)
async def test_a_card_of_any_type_replays_at_every_task(
    tmp_path: Path, server: TemporalServer, kind: str
) -> None:
    program(tmp_path, kind)
    # No run stays in memory: the code runs from the start at every task.
    async with temporal_world(tmp_path, server) as world, world.worker(max_cached_runs=0):
        run = await world.start("top")
        result = await world.runs.result(run)
        assert result.message.text
        assert result.steps > 0
        await world.replay(await run.fetch_history(), REPLAYS)
