"""Sessions in PostgreSQL: events that are in the database before anybody sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.postgres_server import PostgresServer, why_not

from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 5
SLOW_DISK = ("commit_delay=4800", "commit_siblings=0")
"""A commit waits for 4.8 ms more, as on the disk by which the goals were set."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure a session alone against bare INSERTs, on two disks, and 64 sessions at once."""
    reason = why_not()
    if reason is not None:
        raise BenchError(reason)
    count = 30 if setup.quick else 150
    with PostgresServer() as server, PostgresServer(*SLOW_DISK) as slow_server:

        def ours() -> Values:
            found = setup.ours("postgres.py", server.url, count)
            slow = setup.ours("postgres.py", slow_server.url, count // 3)
            parts = {"part": found["one"] / found["raw"], "slow": slow["one"] / slow["raw"]}
            return {**found, **parts}

        done = compare(setup, ours, rounds=ROUNDS)
    yield done.figure("raw", "rows inserted by one connection, each committed", "/s")
    yield done.figure("one", "events of one session, each awaited", "/s")
    yield done.figure("part", "events of one session to rows inserted", "x",
                      Goal(0.9, at_least=True))  # fmt: skip
    yield done.figure("slow", "the same where a commit takes the disk 5 ms", "x",
                      Goal(0.9, at_least=True))  # fmt: skip
    yield done.figure("many", "events of 64 sessions, each awaited", "/s",
                      Goal(5_000, at_least=True))  # fmt: skip
