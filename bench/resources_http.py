"""Reads of skills over streamable HTTP, by several clients at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from bench.figure import Goal
from bench.http_client import MODERN, HttpServer, free_port, time_reads
from bench.process import BenchError
from bench.resource_files import skill_name, write_skills
from bench.resource_peers import compare_all, fastmcp_peer, line, sdk_peer
from bench.setup import HERE
from bench.stdio_client import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.resource_peers import ResourcePeer
    from bench.setup import Setup

Command: TypeAlias = "tuple[str | Path, ...]"

ROUNDS = 3
COUNTS = (10, 1_000)
CONNECTIONS = 8
READS, PEER_READS = 4_000, 160


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure reads; the limit is a loop that writes ready bytes to whatever comes."""
    for count in COUNTS:
        root = write_skills(setup.work / f"skills-http-{count}", count)
        yield from _of_era(setup, root, count, PROTOCOL)
        yield from _of_era(setup, root, count, MODERN)


def _of_era(setup: Setup, root: Path, count: int, protocol: str) -> Iterator[Figure]:
    fastmcp, sdk = fastmcp_peer(setup), sdk_peer(setup)

    def ours(port: int) -> Command:
        serve = (setup.program, "resources", "serve", "--skills", root)
        return (*serve, "--transport", "http", "--port", str(port))

    def bare(port: int) -> Command:
        return (setup.python, "-P", HERE / "ours" / "bare_http.py", root, str(port))

    def theirs(peer: ResourcePeer) -> Values:
        reads = PEER_READS if peer.name == fastmcp.name else READS // 2
        command = (*peer.command, root)
        return _read(setup, lambda port: (*command, str(port)), count, reads, protocol)

    done = compare_all(
        setup,
        lambda: _read(setup, ours, count, READS, protocol),
        limit=lambda: _read(setup, bare, count, READS, protocol),
        peers={fastmcp: theirs, sdk: theirs} if protocol == PROTOCOL else {sdk: theirs},
        rounds=ROUNDS,
    )
    for peer, one in done.items():
        also = "" if len(done) == 1 or peer == fastmcp.name else ", beside the bare SDK"
        if also and not setup.peers_asked:
            continue
        name = f"HTTP {protocol} reads, {CONNECTIONS} connections, {count:,} skills{also}"
        yield line(one, "reads", name, "/s", Goal(2_500, at_least=True))


def _read(
    setup: Setup, command: Callable[[int], Command], count: int, reads: int, protocol: str
) -> Values:
    reads = reads // 10 if setup.quick else reads
    port = free_port()
    with HttpServer(command(port), port, cwd=setup.work, environ=setup.environ) as server:
        connections = [server.connect(protocol) for _ in range(CONNECTIONS)]
        uris = [f"skill://{skill_name(number)}/SKILL.md" for number in range(count)]
        _, body = connections[0].ask("resources/read", {"uri": uris[0]})
        if skill_name(0).encode() not in body or b'"error"' in body[:80]:
            raise BenchError("a read did not give the skill")
        server.settle()
        time_reads(connections, uris, CONNECTIONS * 4)
        return {"reads": reads / time_reads(connections, uris, reads)}
