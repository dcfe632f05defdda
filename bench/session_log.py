"""The log of a session: an event, a turn early and late, and resuming a long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.process import BenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 5
EVENTS, QUICK_EVENTS = 100_000, 10_000


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure events against bare writes, then a session of many events."""
    home = setup.work / "sessions-home"
    home.mkdir()
    count = QUICK_EVENTS if setup.quick else EVENTS
    made = setup.ours("session_log.py", "fill", home, count)
    tools = setup.ours("session_log.py", "fill-tools", home, count)
    if made["events"] != count or tools["events"] != count:
        raise BenchError(f"the sessions hold {made['events']} and {tools['events']} events")

    def ours() -> Values:
        times = setup.ours("session_log.py", "append", home)
        rates = setup.ours("session_log.py", "rate", home)
        turn = setup.ours("session_log.py", "turns", home, made["id"])
        resumed = setup.ours("session_log.py", "resume", home, made["id"])
        called = setup.ours("session_log.py", "resume", home, tools["id"])
        if resumed["messages"] < count // 3 * 2 or called["messages"] < count // 5 * 4:
            found = f"{resumed['messages']} and {called['messages']}"
            raise BenchError(f"{found} messages were resumed")
        return {
            "soon": rates["soon"],
            "sure": rates["sure"],
            "tools": called["seconds"],
            "tools processor": called["processor"],
            "append": times["append"] * 1000,
            "sync": times["sync"] * 1000,
            "growth": turn["old"] / turn["young"],
            "resume": resumed["seconds"],
            "processor": resumed["processor"],
        }

    def limit() -> Values:
        times = setup.ours("session_log.py", "append", home)
        return {"sync": times["bare"] * 1000, "sure": times["writes"]}

    done = compare(setup, ours, limit=limit, rounds=ROUNDS)
    yield done.figure("append", "session event kept from a kill, p99", "ms")
    yield done.figure("sync", "session event brought to the disk, p99", "ms")
    yield done.figure("soon", "turns kept, the disk waited for once a second", "/s")
    yield done.figure("sure", "turns kept, each on the disk", "/s")
    name = f"processor time of a kept turn after {count:,} events to that of an early one"
    yield done.figure("growth", name, "x", Goal(1.1))
    yield done.figure("resume", f"session of {count:,} events resumed", "s", Goal(1.0))
    yield done.figure("processor", "processor time of that", "s")
    yield done.figure(
        "tools", f"session of {count:,} events resumed, tool calls only", "s", Goal(1.0)
    )
    yield done.figure("tools processor", "processor time of that", "s")
