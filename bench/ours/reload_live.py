"""Passes while agents are live, and the time from an edit to an answer by it under `--watch`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.directory_look import look

from fast_agent.app import FastAgent

if TYPE_CHECKING:
    from fast_agent.agent_app import AgentApp


def write_version(cards: Path, name: str, number: int) -> None:
    """Write a card whose function gives a number."""
    tool = cards / f"tool_{number}.py"
    tool.write_text(f"def number() -> int:\n    return {number}\n", encoding="utf-8")
    text = (
        f"---\nname: {name}\ndescription: Answers.\nmodel: passthrough\n"
        f'function_tools: ["tool_{number}.py:number"]\n---\nBe brief.\n'
    )
    beside = cards / ".beside"
    beside.write_text(text, encoding="utf-8")
    beside.replace(cards / f"{name}.md")
    (cards / f"tool_{number - 2}.py").unlink(missing_ok=True)


async def passes(program: FastAgent, app: AgentApp, name: str, rounds: int) -> dict[str, float]:
    """Time passes after an edit, each with the refresh of what is live."""
    card = Path(str(app.load_set.cards[name].path))
    card = card if card.is_absolute() else program.workspace / card
    text = card.read_text(encoding="utf-8")
    limit: list[float] = []
    live: list[float] = []
    cpu: list[float] = []
    for number in range(rounds):
        await app[name].send("hi")
        clock = time.perf_counter()
        look(str(card.parent))
        limit.append(time.perf_counter() - clock)
        await app[name].send("hi")
        card.write_text(f"{text}Round {number}.\n", encoding="utf-8")
        clock, processor = time.perf_counter(), time.process_time()
        program.reload()
        changed = await app.refresh()
        agent = app[name]
        live.append(time.perf_counter() - clock)
        cpu.append(time.process_time() - processor)
        if not changed or f"Round {number}." not in (agent.config.instruction or ""):
            sys.exit("a pass did not take the change")
    return {
        "limit": statistics.median(limit),
        "live": statistics.median(live),
        "live_cpu": statistics.median(cpu),
    }


async def edits(program: FastAgent, app: AgentApp, name: str, rounds: int) -> float:
    """Time edits until an agent answers by them; give the median."""
    seconds: list[float] = []
    cards = program.workspace / "cards"
    with program.watch(lambda _: None):
        await anyio.sleep(1)
        for number in range(1, rounds + 1):
            begun = time.perf_counter()
            write_version(cards, name, number)
            while True:
                await app.refresh()
                answer = await app[name].send("***CALL_TOOL number {}")
                if answer == str(number):
                    break
                await anyio.sleep(0.001)
            seconds.append(time.perf_counter() - begun)
            await anyio.sleep(0.1)
    return statistics.median(seconds)


async def main(directory: str, name: str, rounds: int) -> None:
    cards = Path(directory)
    program = FastAgent(cwd=cards.parent, environ={}, ignore_config=True)
    count = len(program.load(cards=[cards]))
    async with program.run(grows=True) as app:
        figures = await passes(program, app, name, rounds)
        edit = await edits(program, app, name, max(5, rounds // 4))
    print(json.dumps({"cards": count, **figures, "edit": edit}))


anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
