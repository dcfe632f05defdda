"""Time durable runs: a step, a run of three, many queued, a long one that is resumed."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio

from fast_agent import FastAgent
from fast_agent.cards.agent_config import RequestParams
from fast_agent.engine.batch import Batch
from fast_agent.engine.engine import RunAnswer
from fast_agent.engine.model_requests import ModelRequests
from fast_agent.engine.run_rows import NewRun
from fast_agent.engine.run_steps import DurableSteps
from fast_agent.engine.run_store import RunStore
from fast_agent.steps.parts import StepRedactor
from fast_agent.steps.steps import Codec, Step, entered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.agent_app import AgentApp
    from fast_agent.engine.run_rows import RunRow
    from fast_agent.steps.steps import Steps
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

CALL = '***CALL_TOOL add {"a": 40, "b": 2}'
CODEC: Codec[JsonValue] = Codec(lambda value: value, lambda value: value)


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def opened(path: Path, messages: Sequence[str]) -> RunStore:
    """Open a fresh store, with runs that are queued."""
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink()
    store = RunStore(path, "b")
    store.queue(NewRun(n, str(n), "a", json.dumps(text)) for n, text in enumerate(messages))
    return store


def requests(most: int = 40) -> ModelRequests:
    """Return what sends model requests, without limits."""
    return ModelRequests(most, notify=logging.warning)


async def ask_steps(store: RunStore, run: RunRow, count: int) -> float:
    """Ask steps that answer at once; return the processor seconds of one."""
    steps = DurableSteps(store, run, StepRedactor(), requests())

    async def work() -> JsonValue:
        return {"text": "an answer of some length, as tools return them", "number": 42}

    with entered(steps.top):
        begun = time.process_time()
        for number in range(count):
            await steps.ask(Step("tool", f"call-{number}", {"tool": "t"}, "a"), work, CODEC)
        return (time.process_time() - begun) / count


async def run_batch(app: AgentApp, store: RunStore, at_once: int, answer: str) -> None:
    """Answer all that is queued."""

    async def ask(run: RunRow, steps: Steps) -> RunAnswer:
        conversation = app.new_conversation(steps=steps)
        try:
            result = await conversation.agent(run.agent).generate(json.loads(run.input))
        finally:
            await conversation.aclose()
        if answer not in {result.text, "*"}:
            sys.exit(f"the answer is {result.text!r}")
        return RunAnswer(result.text, {})

    batch = Batch(store, requests(at_once), StepRedactor(), ask, edition="e", concurrency=at_once)
    await batch.run()
    if batch.counts.done != batch.counts.total:
        sys.exit(f"{batch.counts}")


async def small(work: Path, count: int) -> dict[str, float]:
    """Measure a step, a run of three steps, and memory over a thousand runs."""
    store = opened(work / "steps.sqlite", ["steps"])
    run = store.take("me")
    assert run is not None
    found = {"step": await ask_steps(store, run, count)}
    store.close()
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("a", "Count.", model="passthrough", use_history=False, function_tools=[add])
    async with fast.run(params=RequestParams(retries=0)) as app:
        for name, runs in (("warm", 50), ("run", max(count // 5, 100))):
            store = opened(work / "runs.sqlite", [CALL] * runs)
            memory, begun = peak(), time.process_time()
            await run_batch(app, store, 10, "42")
            found[name] = (time.process_time() - begun) / runs
            found["memory"] = (peak() - memory) * 1000 / runs
            store.close()
    return found


def peak() -> float:
    """Return the most memory this process held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


async def resume(work: Path, count: int) -> dict[str, float]:
    """Measure how long a run of many steps takes to be where it was."""
    store = opened(work / "long.sqlite", ["steps"])
    run = store.take("me")
    assert run is not None
    await ask_steps(store, run, count)
    store.recover()
    run = store.take("me")
    assert run is not None
    begun = time.perf_counter()
    await ask_steps(store, run, count)
    taken = time.perf_counter() - begun
    store.close()
    return {"resume": taken}


async def worker(work: Path, name: str, runs: int) -> dict[str, float]:
    """Answer runs on a model that takes 50 ms, ten at once, from a common start on."""
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("a", "Hi.", model="slow?seconds=0.05", use_history=False)
    async with fast.run(params=RequestParams(retries=0)) as app:
        store = opened(work / f"{name}-warm.sqlite", ["hi"] * 10)
        await run_batch(app, store, 10, "*")
        store.close()
        store = opened(work / f"{name}.sqlite", ["hi"] * runs)
        print("ready", flush=True)
        sys.stdin.readline()
        begun, worked = time.perf_counter(), time.process_time()
        await run_batch(app, store, 10, "*")
        taken, used = time.perf_counter() - begun, time.process_time() - worked
        store.close()
    return {"ratio": -(-runs // 10) * 0.05 / taken, "work": used / runs}


def queue(work: Path, count: int) -> dict[str, float]:
    """Measure how long it takes to queue many items."""
    store = opened(work / "queue.sqlite", [])
    begun = time.perf_counter()
    store.queue(NewRun(n, f"key {n}", "a", json.dumps(f"message {n}")) for n in range(count))
    taken = time.perf_counter() - begun
    store.close()
    return {"queue": taken}


if __name__ == "__main__":
    kind, directory, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if kind == "queue":
        values = queue(directory, count)
    elif kind == "worker":
        values = anyio.run(worker, directory, sys.argv[4], count)
    else:
        values = anyio.run({"small": small, "resume": resume}[kind], directory, count)
    print(json.dumps(values))
