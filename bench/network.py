"""A server on a network that clients without its token besiege."""

from __future__ import annotations

import select
import subprocess
import time
from contextlib import contextmanager
from statistics import quantiles
from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.http_client import MODERN, HttpServer, free_port
from bench.process import BenchError
from bench.setup import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.http_client import Connection
    from bench.setup import Setup

ROUNDS = 5
CROWD = 2_000
CALLS, NEW_CONNECTIONS = 1_000, 20
FEW, MANY = 256, 8_192
_KINDS = ("half head", "slow body", "pipeline")
_TOKEN = "a-token-of-the-benchmark"
_BEARER = (f"Authorization: Bearer {_TOKEN}",)
_UP_IN = 5.0
_CARD = "---\ntype: agent\nname: ann\nmodel: passthrough\n---\nSay it back.\n"


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure memory and answers under 2,000 hostile connections, with many descriptors and few."""
    (setup.work / "ann.md").write_text(_CARD, "utf-8")
    (setup.work / "token").write_text(_TOKEN + "\n", "utf-8")
    many = compare(setup, lambda: _with_many(setup), rounds=ROUNDS)
    crowd = f"{CROWD:,} hostile connections, `ulimit -n {MANY}`"
    yield many.figure("memory", f"memory held by {crowd}", "MiB", Goal(64))
    yield many.figure("quiet", "calls of another client before: 99 of 100 within", "ms")
    yield many.figure("besieged", "the same while they are there", "ms")
    yield many.figure("ratio", "how many times as long", "x", Goal(2))
    name = "the server's processor time of such a call, times that before"
    yield many.figure("work", name, "x")
    few = compare(setup, lambda: _with_few(setup), rounds=ROUNDS)
    name = f"the same many, `ulimit -n {FEW}`: longest wait of another client's new connection"
    yield few.figure("longest", name, "s", Goal(1))
    yield few.figure("worked", "the server's processor time in the longest of them", "s", Goal(1))
    yield few.figure("memory", "memory held by them", "MiB", Goal(64))


def _with_many(setup: Setup) -> Values:
    with _server(setup, MANY) as (server, port):
        client = server.connect(MODERN, more=_BEARER)
        _call_times(client, 100)
        start = server.processor_seconds()
        quiet = _late(_call_times(client, CALLS))
        quiet_work = server.processor_seconds() - start
        before = server.resident()
        with _crowd(setup, port):
            start = server.processor_seconds()
            besieged = _late(_call_times(client, CALLS))
            work = server.processor_seconds() - start
            held = server.resident() - before
        client.socket.close()
    return {
        "memory": held / 2**20,
        "quiet": quiet * 1e3,
        "besieged": besieged * 1e3,
        "ratio": besieged / quiet,
        "work": work / quiet_work,
    }


def _with_few(setup: Setup) -> Values:
    with _server(setup, FEW) as (server, port):
        before = server.resident()
        longest = worked = 0.0
        with _crowd(setup, port):
            for _ in range(NEW_CONNECTIONS):
                start, work = time.perf_counter(), server.processor_seconds()
                client = server.connect(MODERN, more=_BEARER)
                client.call("ann", "hello")
                longest = max(longest, time.perf_counter() - start)
                worked = max(worked, server.processor_seconds() - work)
                client.socket.close()
            held = server.resident() - before
    return {"longest": longest, "worked": worked, "memory": held / 2**20}


def _call_times(client: Connection, count: int) -> list[float]:
    found: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        client.call("ann", "hello")
        found.append(time.perf_counter() - start)
    return found


def _late(seconds: Sequence[float]) -> float:
    """Return what 99 of 100 take at most."""
    return quantiles(seconds, n=100)[-1]


@contextmanager
def _server(setup: Setup, descriptors: int) -> Generator[tuple[HttpServer, int]]:
    port = free_port()
    serve: tuple[str | Path, ...] = (setup.program, "serve", "--card", setup.work / "ann.md")
    options = ("--no-session", "--token-file", setup.work / "token", "--port", str(port))
    limited = ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh")
    command = (*limited, *serve, *options)
    with HttpServer(command, port, cwd=setup.work, environ=setup.environ) as server:
        client = server.connect(MODERN, more=_BEARER)
        client.call("ann", "warm")
        client.socket.close()
        yield server, port


@contextmanager
def _crowd(setup: Setup, port: int) -> Generator[None]:
    """Hold hostile connections, from a process of their own, as long as the block lasts."""
    command = [setup.python, "-m", "tests.hostile.crowd", str(port), str(CROWD), *_KINDS]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=ROOT) as process:
        try:
            # Few descriptors never hold all of them at once: they are ended and come again.
            if process.stdout is not None:
                select.select([process.stdout], (), (), _UP_IN)
            if process.poll() is not None:
                raise BenchError("the hostile connections could not be made")
            yield
        finally:
            process.kill()
