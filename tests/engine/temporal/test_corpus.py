"""Histories that this version of the loop wrote are those it would write again.

Where a change has the loop ask for other steps, the tests here fail: raise `LOOP_VERSION`, so that
runs under way end at workers of the version before, and write the corpus again with
`WRITE_CORPUS=1`.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from temporalio.client import WorkflowHistory
from tests.engine.temporal.temporal_world import temporal_world
from tests.recording.test_replay_of_workflows import CARDS, program

from fast_agent.engine.temporal.workflow import LOOP_VERSION

if TYPE_CHECKING:
    from tests.temporal_server import TemporalServer

pytestmark = pytest.mark.anyio

CORPUS = Path(__file__).with_name("corpus")
HISTORY = "history.json"
PARTS = "parts"


@pytest.mark.spec("TEMPORAL-17")
@pytest.mark.parametrize("kind", CARDS)
async def test_the_loop_asks_for_the_steps_its_histories_hold(
    tmp_path: Path, server: TemporalServer, kind: str
) -> None:
    kept = CORPUS / f"{kind}.zip"
    if os.environ.get("WRITE_CORPUS"):
        await write(tmp_path, server, kind, kept)
    place = tmp_path / "kept"
    with zipfile.ZipFile(kept) as archive:
        archive.extractall(place)
    history = json.loads((place / HISTORY).read_text())
    assert history.pop("loop_version") == LOOP_VERSION
    async with temporal_world(place, server) as world:
        await world.replay(WorkflowHistory.from_json(f"corpus-{kind}", history))


async def write(directory: Path, server: TemporalServer, kind: str, kept: Path) -> None:
    """Run an agent, and keep its history with the parts it names."""
    program(directory, kind)
    async with temporal_world(directory, server) as world, world.worker():
        run = await world.start("top")
        await world.runs.result(run)
        history = await run.fetch_history()
    kept.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps({"loop_version": LOOP_VERSION, **history.to_json_dict()})
        archive.writestr(HISTORY, re.sub(r'"identity": "[^"]*"', '"identity": ""', text))
        for path in sorted((directory / PARTS).rglob("*")):
            if path.is_file():
                archive.write(path, f"{PARTS}/{path.relative_to(directory / PARTS)}")
