"""Time events that are written durably to PostgreSQL, by sessions and by bare statements."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import anyio
import psycopg

from fast_agent.messages.message import Message
from fast_agent.sessions.event import MessageAdded, TurnBegan, row_of
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from fast_agent.sessions.journal import SessionJournal

TEXT = "x" * 400


def bare(url: str, count: int) -> float:
    """Return how many rows of half a kilobyte a second one connection inserts."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare(id bigserial PRIMARY KEY, body bytea)")
        body = str(row_of(MessageAdded("turn", 1, Message.user(TEXT)))).encode()
        begun = time.perf_counter()
        for _ in range(count):
            connection.execute("INSERT INTO bare(body) VALUES (%b)", (body,))
        return count / (time.perf_counter() - begun)


async def append(journal: SessionJournal, count: int) -> None:
    """Write events, each awaited until it is in the database."""
    journal.record(
        TurnBegan(
            turn_id="turn",
            agent="ann",
            parent_call_id=None,
            depth=0,
            keeps=True,
            message=Message.user("hi"),
        )
    )
    for number in range(1, count + 1):
        journal.record(MessageAdded("turn", number, Message.user(TEXT)))
        await journal.barrier()


async def rate(store: SessionStore, sessions: int, count: int) -> float:
    """Return how many events a second sessions write that are at work at once."""
    opened = [store.create() for _ in range(sessions)]
    try:
        begun = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for session in opened:
                tasks.start_soon(append, session.journal, count)
        return sessions * count / (time.perf_counter() - begun)
    finally:
        for session in opened:
            session.close()


async def main(url: str, count: int) -> None:
    store = SessionStore(url)
    await rate(store, 1, 20)
    raw: list[float] = []
    one: list[float] = []
    for _ in range(3):
        raw.append(bare(url, count))
        one.append(await rate(store, 1, count))
    many = await rate(store, 64, count)
    print(json.dumps({"raw": median(raw), "one": median(one), "many": many}))


anyio.run(main, sys.argv[1], int(sys.argv[2]))
