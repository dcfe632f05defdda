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


async def compare(message: str, turns: int, *, first: bool) -> float:
    """Return the time of counted turns to that of others.

    Two programs that are the same differ by up to 5 %, by where their values lie in memory, and the
    second of two by less than the first: each pair is made anew, in the other order.
    """
    spent: dict[bool, list[float]] = {True: [], False: []}
    async with program(counted=first).run() as one, program(counted=not first).run() as other:
        for _ in range(max(1, turns // ROUND)):  # by turns, so that both meet the same load
            spent[first].append(await work(one["ann"], message))
            spent[not first].append(await work(other["ann"], message))
    # Medians, since a busy machine now and then interrupts one of them.
    return median(spent[True]) / median(spent[False])


async def main(pairs: int, turns: int) -> None:
    found: dict[str, list[float]] = {kind: [] for kind in MESSAGES}
    for kind, message in MESSAGES.items():
        await compare(message, ROUND, first=True)  # imports
        for pair in range(pairs):
            found[kind].append(await compare(message, turns, first=pair % 2 == 0))
    print(json.dumps(found))


anyio.run(main, int(sys.argv[1]), int(sys.argv[2]))
