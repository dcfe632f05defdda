"""Time the log of a session: events, turns at its beginning and at its end, and its resuming.

`session_log.py fill HOME EVENTS` makes a session of so many events and prints its id, `fill-tools`
one of turns that each call a tool; `resume HOME ID` opens it in this process and answers one
message; `turns HOME ID` times turns in it and in a new one, by turns; `append HOME` times single
events, and `rate HOME` turns that follow each other.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.sessions.event import (
    MessageAdded,
    SessionTitled,
    ToolAnswered,
    TurnBegan,
    TurnEnded,
    row_of,
)
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fast_agent.agents.agent import Agent
    from fast_agent.sessions.event import SessionEvent

APPENDS, SYNCS, TURNS = 5_000, 300, 2_000
BATCH, BATCHES = 10, 60
ASKED = "what does the third paragraph of the second page say about the price of bread? " * 2


def turn(number: int) -> Iterator[SessionEvent]:
    turn_id = f"turn-4f2a9c07d1b2-{number}"
    yield TurnBegan(
        turn_id=turn_id,
        agent="ann",
        parent_call_id=None,
        depth=0,
        keeps=True,
        message=Message.user(ASKED),
    )
    yield MessageAdded(turn_id, 1, Message.assistant(ASKED * 2))
    yield TurnEnded(turn_id, "endTurn", kept=True)


def tool_turn(number: int) -> Iterator[SessionEvent]:
    began, answer, ended = turn(number)
    call = ToolCall(
        f"call-{number}", "look", {"path": "pages/2.md", "line": number, "word": "bread"}
    )
    asking = Message("assistant", (TextContent("let me look"),), (call,), stop_reason="toolUse")
    yield began
    yield MessageAdded(f"turn-4f2a9c07d1b2-{number}", 1, asking)
    yield ToolAnswered(f"turn-4f2a9c07d1b2-{number}", ToolResult(call.id, (TextContent(ASKED),)))
    if isinstance(answer, MessageAdded):
        yield replace(answer, index=3)
    yield ended


def fill(
    home: Path, events: int, one: Callable[[int], Iterator[SessionEvent]]
) -> dict[str, object]:
    each = len(list(one(0)))
    rows = [(0.0, row_of(event)) for number in range(events // each) for event in one(number)]
    rows += [(0.0, row_of(SessionTitled("long")))] * (events % each)
    with SessionStore(home).create() as session:
        session.take_over(rows)
        return {"id": session.id, "events": session.state.last}


def agents() -> FastAgent:
    fast = FastAgent("bench", ignore_config=True)
    fast.agent("ann", "Repeat.", model="passthrough")
    return fast


async def resume(home: Path, session_id: str) -> dict[str, object]:
    fast = agents()
    with SessionStore(home).create() as warm:
        async with fast.run(journal=warm.journal) as app:
            await app["ann"].send("hi")
    start, busy = time.perf_counter(), time.process_time()
    with SessionStore(home).open(session_id) as session:
        async with fast.run(journal=session.journal) as app:
            await app["ann"].send("hi")
            took, used = time.perf_counter() - start, time.process_time() - busy
            length = len(app["ann"].history)
    return {"seconds": took, "processor": used, "messages": length}


async def batch(agent: Agent) -> float:
    """Return the processor time of one turn, in seconds."""
    start = time.process_time()
    for _ in range(BATCH):
        await agent.send("hi")
    return (time.process_time() - start) / BATCH


async def turns(home: Path, session_id: str) -> dict[str, object]:
    fast = agents()
    store = SessionStore(home)
    young: list[float] = []
    old: list[float] = []
    with store.create() as new, store.open(session_id) as long:
        async with fast.run(journal=new.journal) as first, fast.run(journal=long.journal) as second:
            for agent in (first["ann"], second["ann"]):
                await batch(agent)
            for _ in range(BATCHES):
                young.append(await batch(first["ann"]))
                old.append(await batch(second["ann"]))
    return {"young": median(young), "old": median(old)}


async def rate(home: Path) -> dict[str, object]:
    """Time turns that wait for the disk once in a while, and turns that each do."""
    fast = agents()
    times: dict[str, float] = {}
    for name, disk_seconds, count in (("soon", None, TURNS), ("sure", 0.0, TURNS // 10)):
        with SessionStore(home, disk_seconds=disk_seconds).create() as session:
            async with fast.run(journal=session.journal) as app:
                await app["ann"].send("hi")
                start = time.perf_counter()
                for _ in range(count):
                    await app["ann"].send("hi")
                times[name] = count / (time.perf_counter() - start)
    return {**times}


def append(home: Path) -> dict[str, object]:
    """Time events that outlive a killed process, those brought to the disk, and bare writes."""
    with SessionStore(home).create() as session:
        events = (event for number in range(APPENDS) for event in turn(number))
        kept = p99([timed(lambda: session.journal.record(next(events))) for _ in range(APPENDS)])
        ended = (TurnEnded(f"turn-4f2a9c07d1b2-{number}", "x", False) for number in range(SYNCS))
        surely = p99(
            [timed(lambda: session.journal.record_durably(next(ended))) for _ in range(SYNCS)]
        )
    times = bare(home)
    return {"append": kept, "sync": surely, "bare": p99(times), "writes": SYNCS / sum(times)}


def bare(home: Path) -> list[float]:
    """Return the seconds of bare writes that are brought to the disk."""
    path = home / "bare"
    page = os.urandom(4096 + 24)
    with path.open("wb", buffering=0) as file:

        def write() -> None:
            file.write(page)
            os.fsync(file.fileno())

        times = [timed(write) for _ in range(SYNCS)]
    path.unlink()
    return times


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def main(what: str, home: Path, *rest: str) -> dict[str, object]:
    match what:
        case "fill":
            return fill(home, int(rest[0]), turn)
        case "fill-tools":
            return fill(home, int(rest[0]), tool_turn)
        case "rate":
            return anyio.run(rate, home)
        case "append":
            return append(home)
        case "turns":
            return anyio.run(turns, home, rest[0])
        case _:
            return anyio.run(resume, home, rest[0])


print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])))
