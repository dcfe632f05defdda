"""Agents served: how soon, how many calls a second over HTTP, and what a session costs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bench.comparison import compare
from bench.figure import Goal
from bench.http_client import HttpServer, call_of, free_port, time_calls
from bench.process import BenchError
from bench.stdio_client import StdioClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

ROUNDS = 3
CALLS, PEER_CALLS = 1_000, 60
CLIENTS = 20
SESSIONS = 1_000
_CARD = "---\ntype: agent\nname: ann\nmodel: passthrough\n---\nSay it back.\n"
_SCOPES = ("shared", "connection", "request")


class Work(NamedTuple):
    """What is measured of a server.

    Args:
        calls: How many calls.
        clients: From how many connections at once.
    """

    calls: int
    clients: int


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure the start, calls in each scope, and idle sessions."""
    card = setup.work / "ann.md"
    card.write_text(_CARD, "utf-8")
    done = compare(
        setup,
        lambda: {"ready": _ready(setup, _ours(setup, card, "shared"))},
        peer=lambda peer: {"ready": _ready(setup, _theirs(peer, card, "shared"))},
        rounds=ROUNDS,
    )
    yield done.figure("ready", "agents served over HTTP: ready", "s", Goal(0.9))
    done = compare(
        setup,
        partial(_opened, setup, (setup.program, *_over_stdio(card), "--no-session")),
        peer=lambda peer: _opened(setup, (peer.program, *_over_stdio(card))),
        rounds=ROUNDS,
    )
    yield done.figure("ready", "agents served over stdio: initialized", "s", Goal(0.9))
    yield done.figure("called", "the same until a call is answered", "s")
    for scope in _SCOPES:
        yield from _of_scope(setup, card, scope)
    logged = compare(setup, partial(_logged, setup, card), rounds=ROUNDS)
    for clients, least in ((1, 400), (CLIENTS, 600)):
        who = "sequential" if clients == 1 else f"{clients} clients"
        name = f"calls, {who}, shared, kept as a session"
        yield logged.figure(str(clients), name, "/s", Goal(least, at_least=True))
    yield from _memory(setup, card)


def _of_scope(setup: Setup, card: Path, scope: str) -> Iterator[Figure]:
    works = {1: Work(_many(setup, CALLS), 1), CLIENTS: Work(_many(setup, CALLS), CLIENTS)}

    def ours() -> Values:
        command = _ours(setup, card, scope)
        return {str(many): _rate(setup, command, work, "ann") for many, work in works.items()}

    def theirs(peer: Peer) -> Values:
        command = _theirs(peer, card, scope)
        found: dict[str, float] = {}
        for many in works:
            try:
                found[str(many)] = _rate(setup, command, Work(PEER_CALLS, many), "ann")
            except BenchError:
                found[str(many)] = 0.0  # it did not answer every call
        return found

    done = compare(setup, ours, peer=theirs, rounds=ROUNDS)
    goals = {1: 400, CLIENTS: 600} if scope != "request" else {1: 250, CLIENTS: 250}
    for many, least in goals.items():
        who = "sequential" if many == 1 else f"{many} clients"
        yield done.figure(str(many), f"calls, {who}, {scope}", "/s", Goal(least, at_least=True))


def _memory(setup: Setup, card: Path) -> Iterator[Figure]:
    count = _many(setup, SESSIONS - 1)

    def ours() -> Values:
        return {name: _each(setup, card, count, name) for name in ("idle", "used", "streamed")}

    done = compare(setup, ours, rounds=1)
    yield done.figure("idle", f"memory of each of {count + 1} idle sessions", "KiB", Goal(50))
    yield done.figure("used", "the same after a call each", "KiB")
    yield done.figure("streamed", "the same after a stream each, which the SDK holds", "KiB")


def _each(setup: Setup, card: Path, count: int, how: str) -> float:
    """Open sessions, and say what each costs in KiB; an idle one has no connection open."""
    with _server(setup, _ours(setup, card, "connection")) as server:
        server.settle()
        first = server.connect()
        first.call("ann", "hello")
        before = server.resident()
        for _ in range(count):
            one = server.connect()
            if how == "used":
                one.call("ann", "hello")
            elif how == "streamed":
                one.ask("tools/call", {**call_of("ann", "hello"), "_meta": {"progressToken": 1}})
            one.socket.close()
        after = server.resident()
        first.socket.close()
    return (after - before) / count / 1024


def _logged(setup: Setup, card: Path) -> Values:
    def command(port: int) -> tuple[str | Path, ...]:
        return _ours(setup, card, "shared")(port)[:-1]

    calls = _many(setup, CALLS)
    return {str(many): _rate(setup, command, Work(calls, many), "ann") for many in (1, CLIENTS)}


def _ready(setup: Setup, command: Callable[[int], tuple[str | Path, ...]]) -> float:
    start = time.perf_counter()
    with _server(setup, command) as server:
        one = server.connect()
        seconds = time.perf_counter() - start
        one.socket.close()
    return seconds


def _opened(setup: Setup, command: Sequence[str | Path]) -> Values:
    """Start a server over stdio, and say how soon it answers a handshake, and then a call."""
    start = time.perf_counter()
    with StdioClient(command, cwd=setup.work, environ=setup.environ) as client:
        client.open()
        ready = time.perf_counter() - start
        client.ask("tools/call", call_of("ann", "hello"))
        return {"ready": ready, "called": time.perf_counter() - start}


def _rate(
    setup: Setup, command: Callable[[int], tuple[str | Path, ...]], work: Work, agent: str
) -> float:
    with _server(setup, command) as server:
        connections = [server.connect() for _ in range(work.clients)]
        for one in connections:
            one.call(agent, "warm")
        server.settle()
        seconds = time_calls(connections, agent, work.calls)
        for one in connections:
            one.socket.close()
    return work.calls / seconds


def _server(setup: Setup, command: Callable[[int], tuple[str | Path, ...]]) -> HttpServer:
    port = free_port()
    return HttpServer(command(port), port, cwd=setup.work, environ=setup.environ)


def _ours(setup: Setup, card: Path, scope: str) -> Callable[[int], tuple[str | Path, ...]]:
    serve = (setup.program, "serve", "--card", card, "--instance-scope", scope)
    return lambda port: (*serve, "--port", str(port), "--no-session")


def _over_stdio(card: Path) -> tuple[str | Path, ...]:
    return ("serve", "--card", card, "--transport", "stdio")


def _theirs(peer: Peer, card: Path, scope: str) -> Callable[[int], tuple[str | Path, ...]]:
    serve = (peer.program, "serve", "--card", card, "--instance-scope", scope)
    return lambda port: (*serve, "--transport", "http", "--port", str(port))


def _many(setup: Setup, count: int) -> int:
    return count // 5 if setup.quick else count
