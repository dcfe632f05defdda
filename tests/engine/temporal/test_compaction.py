"""Runs on Temporal whose conversation the provider compacts between two turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.engine.temporal.temporal_world import temporal_world
from tests.models.conftest import start_wire
from tests.models.test_native_compaction import compacted, said, sent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import StartWire
    from tests.temporal_server import TemporalServer

__all__ = ["start_wire"]

pytestmark = pytest.mark.anyio


@pytest.mark.spec("CONTEXT-8")
async def test_a_full_window_is_compacted_by_the_provider_in_a_step_of_its_own(
    start_wire: StartWire, tmp_path: Path, server: TemporalServer
) -> None:
    wire = start_wire(said("the first answer", 900), compacted("b3BhcXVl"), said("done"))
    (tmp_path / "config.yaml").write_text(
        f"openai: {{base_url: '{wire.url}', api_key: k-secret}}\n"
        "model_facts: {openai.gpt-5: {context_window: 1000}}\n"
    )
    async with temporal_world(tmp_path, server) as world, world.worker():
        world.write(
            ann="type: agent\nmodel: openai.gpt-5\ninstruction: Be kind.\n",
            twice="type: chain\ndefault: true\nsequence: [ann, ann]\n",
        )
        run = await world.start("twice", "the first question")
        result = await world.runs.result(run)
        assert result.message.text == "done"
        assert [one.path for one in wire.seen] == ["/responses", "/responses/compact", "/responses"]
        assert "b3BhcXVl" in sent(wire, 2)
        assert "the first question" not in sent(wire, 2)
        await world.replay(await run.fetch_history(), 2)
        assert len(wire.seen) == 3
