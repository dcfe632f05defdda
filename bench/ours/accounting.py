"""Time turns of agents with a known window and compaction beside agents with neither, in pairs.

usage: accounting.py PAIRS TURNS
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent

if TYPE_CHECKING:
    from fast_agent.agents.agent import Agent

ROUND = 10
MESSAGES = {"passthrough": "hi", "tool": '***CALL_TOOL add {"a": 40, "b": 2}'}


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def program(*, counted: bool) -> FastAgent:
    """Make a program whose agent's window is known, or one that neither knows nor compacts."""
    path = Path("counted.yaml" if counted else "plain.yaml")
    facts = "model_facts: {passthrough: {context_window: 1000000000}}\n"
    path.write_text(facts if counted else "compaction: false\n")
    fast = FastAgent("bench", config_path=path)
    fast.agent("ann", "Repeat.", model="passthrough", function_tools=[add], default=True)
    return fast


async def work(agent: Agent, message: str) -> float:
    """Return the processor seconds of a few turns of a fresh conversation."""
    agent.clear(all=True)
    start = time.process_time()
    for _ in range(ROUND):
        await agent.send(message)
    return time.process_time() - start


async def main(pairs: int, turns: int) -> None:
    found: dict[str, list[float]] = {kind: [] for kind in MESSAGES}
    async with program(counted=True).run() as one, program(counted=False).run() as other:
        for kind, message in MESSAGES.items():
            for pair in range(pairs + 1):
                counted, plain = list[float](), list[float]()
                for _ in range(max(1, turns // ROUND)):  # by turns, so that both meet the same load
                    counted.append(await work(one["ann"], message))
                    plain.append(await work(other["ann"], message))
                if pair:  # medians, since a busy machine now and then interrupts one of them
                    found[kind].append(median(counted) / median(plain))
    print(json.dumps(found))


anyio.run(main, int(sys.argv[1]), int(sys.argv[2]))
