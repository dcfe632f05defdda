"""Time the log of a session: events, turns at its beginning and at its end, and its resuming.

`session_log.py fill HOME EVENTS` makes a session of so many events and prints its id; `resume HOME
ID` opens it in this process and answers one message; `turns HOME ID` times turns in it and in a new
one, by turns; `append HOME` times single events.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

import anyio

from fast_agent import FastAgent
from fast_agent.messages.message import Message
from fast_agent.sessions.event import MessageAdded, Titled, TurnBegan, TurnEnded
from fast_agent.sessions.row import row_of
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fast_agent.runtime.agent import Agent
    from fast_agent.sessions.event import SessionEvent

APPENDS, SYNCS = 5_000, 300
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


def fill(home: Path, events: int) -> dict[str, object]:
    rows = [(0.0, row_of(event)) for number in range(events // 3) for event in turn(number)]
    rows += [(0.0, row_of(Titled("long")))] * (events % 3)
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
    """Give the processor time of one turn, in seconds."""
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


def append(home: Path) -> dict[str, object]:
    """Time events that outlive a killed process, those brought to the disk, and bare writes."""
    with SessionStore(home).create() as session:
        events = (event for number in range(APPENDS) for event in turn(number))
        kept = p99([timed(lambda: session.journal.record(next(events))) for _ in range(APPENDS)])
        ended = (TurnEnded(f"turn-4f2a9c07d1b2-{number}", "x", False) for number in range(SYNCS))
        surely = p99([timed(lambda: session.journal.settle(next(ended))) for _ in range(SYNCS)])
    path = home / "bare"
    page = os.urandom(4096 + 24)
    with path.open("wb", buffering=0) as file:

        def write() -> None:
            file.write(page)
            os.fsync(file.fileno())

        bare = p99([timed(write) for _ in range(SYNCS)])
    path.unlink()
    return {"append": kept, "sync": surely, "bare": bare}


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def main(what: str, home: Path, *rest: str) -> dict[str, object]:
    match what:
        case "fill":
            return fill(home, int(rest[0]))
        case "append":
            return append(home)
        case "turns":
            return anyio.run(turns, home, rest[0])
        case _:
            return anyio.run(resume, home, rest[0])


print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])))
