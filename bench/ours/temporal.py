"""Time runs on a Temporal server: bare activities, runs, and conversations that run again.

usage: temporal.py ADDRESS DIRECTORY RUNS TURNS
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio import activity, workflow
from temporalio.worker import Replayer, Worker

from fast_agent.app import FastAgent
from fast_agent.engine.edition import EditionChoices
from fast_agent.engine.part_store import open_parts
from fast_agent.engine.temporal.connection import TemporalOptions, connect
from fast_agent.engine.temporal.runs import TemporalRuns
from fast_agent.engine.temporal.worker import (
    EditionHost,
    EditionInterceptor,
    WorkerOptions,
    run_worker,
)
from fast_agent.engine.temporal.workflow import AgentRun
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from temporalio.client import Client, WorkflowHistory

STEPS = 3
AT_ONCE = 20
CALL = '***CALL_TOOL {} {{"a": 40, "b": 2}}'
TOOLS = '''\
from fast_agent import tool


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(repeatable=False)
def add_once(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''
CARD = "type: agent\nmodel: passthrough\ninstruction: Count.\nuse_history: false\n"


@activity.defn(name="nothing")
async def nothing(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was given."""
    return given


@workflow.defn(name="Bare", sandboxed=False)
class Bare:
    """As many activities as a run has steps, by the SDK alone."""

    @workflow.run
    async def run(self, given: dict[str, Any]) -> dict[str, Any]:
        """Execute the activities one after the other."""
        for _ in range(STEPS):
            given = await workflow.execute_activity(
                nothing, given, start_to_close_timeout=timedelta(seconds=60)
            )
        return given


@workflow.defn(name="BareTalk", sandboxed=False)
class BareTalk:
    """A conversation of bare activities, one a turn, by the SDK alone."""

    def __init__(self) -> None:
        self._is_closed = False

    @workflow.run
    async def run(self) -> None:
        """Wait for the end."""
        await workflow.wait_condition(lambda: self._is_closed)

    @workflow.update
    async def turn(self, given: dict[str, Any]) -> dict[str, Any]:
        """Execute an activity."""
        return await workflow.execute_activity(
            nothing, given, start_to_close_timeout=timedelta(seconds=60)
        )

    @workflow.signal
    def close(self) -> None:
        """End the conversation."""
        self._is_closed = True


async def many(count: int, one: Callable[[int], Awaitable[object]]) -> tuple[float, float]:
    """Do something many times, some at once.

    Returns:
        The processor time of this process for each, in milliseconds, and how many a second.
    """
    await one(-1)  # loads the edition, and what only the first needs
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)

    begun, worked = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    used, taken = time.process_time() - worked, time.perf_counter() - begun
    return used / count * 1e3, count / taken


async def bare(client: Client, count: int, turns: int) -> dict[str, float]:
    """Run bare activities, and a conversation of them that runs again from its history."""

    async def one(number: int) -> None:
        given = {"text": "x" * 500}
        await client.execute_workflow(Bare.run, given, id=f"bare-{number}", task_queue="bare")

    with ThreadPoolExecutor(1) as executor:
        worker = Worker(
            client,
            task_queue="bare",
            workflows=[Bare, BareTalk],
            activities=[nothing],
            workflow_task_executor=executor,
        )
        async with worker:
            work, rate = await many(count, one)
            talk: Any = await client.start_workflow(BareTalk.run, id="bare-talk", task_queue="bare")
            for number in range(turns):
                given = {"text": f"turn {number}"}
                await talk.execute_update(BareTalk.turn, given, id=str(number))
            await talk.signal(BareTalk.close)
            history = await talk.fetch_history()
    replayer = Replayer(workflows=[BareTalk], data_converter=client.data_converter)
    replay = await replay_seconds(replayer, history) / turns * 1_000
    return {"bare_work": work, "bare_rate": rate, "bare_replay": replay}


async def replay_seconds(replayer: Replayer, history: WorkflowHistory) -> float:
    """Run a workflow again from its history; returns the processor seconds it took."""
    begun = time.process_time()
    await replayer.replay_workflow(history)
    return time.process_time() - begun


def program(directory: Path, workspace: Path | None = None) -> FastAgent:
    """Make a program, as workers make theirs."""
    home = {"FAST_AGENT_HOME": str(directory / "home")}
    return FastAgent(cwd=workspace or directory, environ=home, ignore_config=True)


async def ours(client: Client, options: TemporalOptions, directory: Path, count: int, turns: int,
               ) -> dict[str, float]:  # fmt: skip
    """Run agents, with and without local activities, and a conversation again from its history."""
    parts = open_parts(str(directory / "parts"))
    (directory / "tools.py").write_text(TOOLS)
    for name, tool in (("local", "add"), ("remote", "add_once")):
        text = f"{CARD}function_tools: [tools.py:{tool}]\n"
        (directory / f"{name}.yaml").write_text(text)
    runs = TemporalRuns(client, options, parts)
    found: dict[str, float] = {}
    stop = asyncio.Event()

    def new_program(workspace: Path | None) -> FastAgent:
        return program(directory, workspace)

    async with EditionHost(parts, directory / "editions", new_program, is_sealed=False) as host:
        given = WorkerOptions(drain_seconds=1.0)
        running = asyncio.create_task(run_worker(client, options, given, host, parts, stop))
        cards = program(directory)
        cards.load_agents(".")
        edition = await runs.pin(cards, EditionChoices())
        for agent, tool in (("local", "add"), ("remote", "add_once")):
            call = Message.user(CALL.format(tool))

            async def one(number: int, agent: str = agent, call: Message = call) -> None:
                run = await runs.start(f"{agent}-{number}", edition, agent, call)
                if (await runs.result(run)).message.text != "42":
                    sys.exit("a run gave another answer")

            found[f"{agent}_work"], found[f"{agent}_rate"] = await many(count, one)
        run: Any = await runs.converse("talk", edition, "local")
        for number in range(turns):
            message = {"role": "user", "content": [{"type": "text", "text": f"turn {number}"}]}
            asked = {"agent": "local", "message": message, "schema": None, "remembers": 0}
            asked["history"] = None
            await run.execute_update("turn", args=[str(number), asked], id=str(number))
        await run.signal("close")
        history = await run.fetch_history()
        stop.set()
        await running
    found["bytes"] = sum(event.ByteSize() for event in history.events) / turns
    async with EditionHost(parts, directory / "editions", new_program, is_sealed=False) as host:
        await host.get(edition.digest)
        replayer = Replayer(
            workflows=[AgentRun],
            interceptors=[EditionInterceptor(host)],
            data_converter=client.data_converter,
        )
        found["replay"] = await replay_seconds(replayer, history) / turns * 1_000
    return found


async def main(address: str, directory: Path, count: int, turns: int) -> None:
    """Measure everything, and print it as JSON."""
    options = TemporalOptions(address=address)
    client = await connect(options, open_parts(str(directory / "parts")), None)
    found = await bare(client, count, turns) | await ours(client, options, directory, count, turns)
    above = (found["remote_work"] - found["bare_work"]) / STEPS
    print(json.dumps({**found, "above": above}))


place = Path(sys.argv[2])
place.mkdir(parents=True)
asyncio.run(main(sys.argv[1], place, int(sys.argv[3]), int(sys.argv[4])))
