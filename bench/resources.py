"""A server of skills over stdio: ready, reads, lists and memory."""

from __future__ import annotations

from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from bench.figure import Goal
from bench.process import BenchError
from bench.resource_files import skill_name, write_skills
from bench.resource_peers import compare_all, fastmcp_peer, line, sdk_peer
from bench.setup import HERE
from bench.stdio_client import StdioClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.resource_peers import ResourcePeer
    from bench.setup import Setup

Command: TypeAlias = "tuple[str | Path, ...]"

ROUNDS = 5
FEW, MANY = 10, 1_000
READY = {FEW: 80, MANY: 250}
READS, PEER_READS = 10_000, 400
LISTS, PEER_LISTS = 400, 10
PER_SIDE = 5.0
"""About how many seconds a slow side gets for its reads, and for its lists."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure servers of 10 and of 1,000 skills; the limit is a loop that writes ready bytes."""
    fastmcp, sdk = fastmcp_peer(setup), sdk_peer(setup)
    own: Command = (setup.program, "resources", "serve", "--skills")
    bare: Command = (setup.python, "-P", HERE / "ours" / "bare_stdio.py")
    for count, ready in READY.items():
        root = write_skills(setup.work / f"skills-{count}", count)

        def theirs(peer: ResourcePeer, root: Path = root, count: int = count) -> Values:
            return _serve(setup, peer.command, root, count, slow=True)

        done = compare_all(
            setup,
            partial(_serve, setup, own, root, count),
            limit=partial(_serve, setup, bare, root, count),
            peers={fastmcp: theirs, sdk: theirs},
            rounds=ROUNDS,
        )
        many = count == MANY
        for peer, one in done.items():
            also = "" if peer == fastmcp.name else ", beside the bare SDK"
            if also and not setup.peers_asked:
                continue
            of = f"{count:,} skills{also}"
            yield line(one, "ready", f"stdio server ready, {of}", "ms", Goal(ready))
            goal = Goal(15_000, at_least=True)
            yield line(one, "pipelined", f"stdio reads, sent together, {of}", "/s", goal)
            yield line(one, "single", f"stdio reads, one by one, {of}", "/s")
            goal = Goal(700, at_least=True) if many else None
            yield line(one, "lists", f"stdio lists of {of}", "/s", goal)
            yield line(one, "memory", f"stdio memory, {of}", "MiB", Goal(40) if many else None)


def _serve(setup: Setup, command: Command, root: Path, count: int, slow: bool = False) -> Values:
    """Start a server, and measure it until it has shown everything."""
    reads, lists = (PEER_READS, PEER_LISTS) if slow else (READS, LISTS)
    if setup.quick:
        reads, lists = reads // 10, lists // 5
    with StdioClient((*command, root), cwd=setup.work, environ=setup.environ) as client:
        client.open()
        listed = client.ask("resources/list")["resources"]
        ready = perf_counter() - client.begun
        if len(listed) < 2 * count:
            raise BenchError(f"{len(listed)} resources were listed of {count} skills")
        uris = [{"uri": f"skill://{skill_name(n % count)}/SKILL.md"} for n in range(reads)]
        first = client.ask("resources/read", uris[0])["contents"][0]["text"]
        if skill_name(0) not in first:
            raise BenchError("a read did not give the skill")
        probe = median(client.time_each("resources/read", uris[:5]))
        together = min(len(uris), max(20, int(PER_SIDE / probe)))
        if not slow:
            client.time_all("resources/read", uris[:count])  # a first read looks at the disk
        single = median(client.time_each("resources/read", uris[: max(20, together // 5)]))
        all_reads = client.time_all("resources/read", uris[:together])
        nothing: list[dict[str, str]] = [{}]
        probe = median(client.time_each("resources/list", nothing * 3))
        times = min(lists, max(3, int(PER_SIDE / probe)))
        all_lists = client.time_all("resources/list", nothing * times)
        memory = client.peak_mib()
    return {
        "ready": ready * 1e3,
        "pipelined": together / all_reads,
        "single": 1 / single,
        "lists": times / all_lists,
        "memory": memory,
    }
