"""Hold a conversation of 10,000 turns on a Temporal server: `make test-long`.

usage: python -m tests.engine.temporal.long_conversation [TURNS]

Exit status: 0 all turns were answered, no task of the workflow failed, and every history replays; 1
otherwise.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.engine.temporal.temporal_world import temporal_world
from tests.engine.temporal.test_conversations import talking
from tests.temporal_server import TemporalServer

if TYPE_CHECKING:
    from tests.engine.temporal.temporal_world import TemporalWorld

AGENT = "type: agent\nmodel: passthrough\ninstruction: You answer.\ndefault: true\n"
REPORTS = 10


async def talk(world: TemporalWorld, turns: int) -> None:
    """Send the messages, and check each answer and what is remembered."""
    world.write(one=AGENT)
    async with talking(world) as app:
        begun = time.perf_counter()
        for number in range(1, turns + 1):
            answer = await app.one(f"message {number}")
            if answer != f"message {number}":
                sys.exit(f"turn {number} was answered with {answer!r}")
            if number % max(turns // REPORTS, 1) == 0:
                rate = number / (time.perf_counter() - begun)
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
                print(f"{number} turns, {rate:.0f} a second, {memory:.0f} MB", flush=True)
        if (len(app.one.history), app.usage.requests) != (2 * turns, turns):
            sys.exit(f"{len(app.one.history)} messages, {app.usage.requests} requests")


async def check(world: TemporalWorld) -> None:
    """Check the histories: none has a task that failed, and each replays."""
    failed = count = 0
    async for one in world.client.list_workflows(world.query):
        handle = world.client.get_workflow_handle(one.id, run_id=one.run_id)
        history = await handle.fetch_history()
        count += 1
        failed += sum(
            event.HasField("workflow_task_failed_event_attributes") for event in history.events
        )
        await world.replay(history)
    print(f"{count} histories replayed, {failed} failed tasks")
    if failed:
        sys.exit(1)


async def main(turns: int) -> None:
    """Talk on a server of its own, and check what it holds."""
    with TemporalServer(in_memory=True) as server, tempfile.TemporaryDirectory() as directory:
        async with temporal_world(Path(directory), server) as world:
            async with world.worker():
                await talk(world, turns)
            await check(world)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
