"""Time runs that worker processes execute: a client, and the processor time of all.

usage: temporal_workers.py ADDRESS DIRECTORY WORKERS RUNS SERVER_PID
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.app import FastAgent
from fast_agent.engine.edition import EditionChoices
from fast_agent.engine.part_store import open_parts
from fast_agent.engine.temporal.connection import TemporalOptions, connect
from fast_agent.engine.temporal.runs import TemporalRuns
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_ONCE = 10
CARD = "type: agent\nmodel: slow?seconds=0.05\ninstruction: Answer.\nuse_history: false\n"
TICKS = os.sysconf("SC_CLK_TCK")


def worked(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main(address: str, directory: Path, count: int, total: int, server: int) -> None:
    """Measure, and print it as JSON."""
    home = {"FAST_AGENT_HOME": str(directory / "home")}
    (directory / "card.yaml").write_text(CARD)
    program = Path(sys.executable).with_name("fast-agent")
    command = [program, "worker", "--temporal-address", address]
    with ExitStack() as stack:
        environ = {**os.environ, **home}
        workers = [
            stack.enter_context(subprocess.Popen(command, cwd=directory, env=environ))
            for _ in range(count)
        ]
        for worker in workers:
            stack.callback(worker.kill)
        print(json.dumps(asyncio.run(measured(address, directory, home, total, server, workers))))


async def measured(
    address: str,
    directory: Path,
    home: dict[str, str],
    total: int,
    server: int,
    workers: Sequence[subprocess.Popen[bytes]],
) -> dict[str, float]:
    """Run agents, and return the processor time of each run in milliseconds, and their rate."""
    options = TemporalOptions(address=address)
    program = FastAgent(cwd=directory, environ=home, ignore_config=True)
    program.load_agents(".")
    parts = open_parts(str(directory / "home/parts"))
    runs = TemporalRuns(await connect(options, parts, None), options, parts)
    edition = await runs.pin(program, EditionChoices())
    at_once = AT_ONCE * len(workers)

    async def one(name: str) -> None:
        run = await runs.start(name, edition, "card", Message.user("hello"))
        await runs.result(run)

    async def all_of(names: Sequence[str]) -> None:
        left = iter(names)

        async def work() -> None:
            for name in left:
                await one(name)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())

    # Every worker has to have loaded the edition.
    await all_of([f"warm-{number}" for number in range(4 * at_once)])
    pids = [worker.pid for worker in workers]
    served, work = worked(server), sum(map(worked, pids)) + time.process_time()
    begun = time.perf_counter()
    await all_of([f"run-{number}" for number in range(total)])
    taken = time.perf_counter() - begun
    return {
        "server": (worked(server) - served) / total * 1e3,
        "workers": (sum(map(worked, pids)) + time.process_time() - work) / total * 1e3,
        "rate": total / taken,
    }


place = Path(sys.argv[2])
place.mkdir(parents=True)
main(sys.argv[1], place, int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
