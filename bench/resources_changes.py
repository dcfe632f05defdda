"""How soon a client hears of a change on disk, and whether a manifest is right at once."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from random import Random
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from bench.figure import Goal
from bench.process import BenchError
from bench.resource_files import SEED, skill_name, write_skill, write_skills
from bench.resource_peers import compare_all, fastmcp_peer, line
from bench.stdio_client import StdioClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.resource_peers import ResourcePeer
    from bench.setup import Setup

Command: TypeAlias = "tuple[str | Path, ...]"

ROUNDS = 3
SKILLS = 100
CHANGES = 9
_PATIENCE = 3.0
_APART = 0.15
"""Seconds between changes, so that none is notified together with the one before."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Edit and add skills below a running server."""
    made = iter(range(1000))

    def root() -> Path:
        return write_skills(setup.work / f"changing-{next(made)}", SKILLS)

    def ours() -> Values:
        command = (setup.program, "resources", "serve", "--skills")
        return {**_reported(setup, command, root()), "stale": _stale(setup, command, root())}

    def theirs(peer: ResourcePeer) -> Values:
        return {"stale": _stale(setup, peer.command, root())}

    (done,) = compare_all(setup, ours, peers={fastmcp_peer(setup): theirs}, rounds=ROUNDS).values()
    yield line(done, "updated", "edit to `updated`", "ms", Goal(120))
    yield line(done, "listed", "new skill to list changed", "ms", Goal(200))
    yield line(done, "stale", f"stale manifests after {CHANGES} edits", "", Goal(0))


def _reported(setup: Setup, command: Command, root: Path) -> Values:
    """Return the median milliseconds until a subscriber hears of an edit and of a new skill."""
    random = Random(SEED)
    edits: list[float] = []
    news: list[float] = []
    with StdioClient((*command, root), cwd=setup.work, environ=setup.environ) as client:
        client.open()
        client.ask("resources/list")
        file = root / skill_name(1) / "SKILL.md"
        client.ask("resources/subscribe", {"uri": f"skill://{skill_name(1)}/SKILL.md"})
        time.sleep(2 * _APART)
        for number in range(CHANGES):
            start = time.perf_counter()
            with file.open("a", encoding="utf-8") as out:
                out.write(f"Edit {number}.\n")
            edits.append(_wait(client, "notifications/resources/updated", start))
            time.sleep(_APART)
        for number in range(CHANGES):
            client.reported.clear()
            start = time.perf_counter()
            write_skill(root, f"new-{number}", random)
            news.append(_wait(client, "notifications/resources/list_changed", start))
            time.sleep(_APART)
    return {"updated": median(edits) * 1e3, "listed": median(news) * 1e3}


def _wait(client: StdioClient, method: str, start: float) -> float:
    when = client.wait_told(method, _PATIENCE)
    if when is None:
        raise BenchError(f"`{method}` did not come within {_PATIENCE:g} s")
    return when - start


def _stale(setup: Setup, command: Command, root: Path) -> float:
    """Count the manifests that, read just after an edit, do not have the file's new hash."""
    stale = 0
    with StdioClient((*command, root), cwd=setup.work, environ=setup.environ) as client:
        client.open()
        client.ask("resources/list")
        file = root / skill_name(1) / "references" / "REFERENCE.md"
        uri = {"uri": f"skill://{skill_name(1)}/_manifest"}
        for number in range(CHANGES):
            file.write_text(f"# Reference\n\nState {number}.\n", encoding="utf-8")
            content = client.ask("resources/read", uri)["contents"][0]
            hashes = {one["path"]: one["hash"] for one in json.loads(content["text"])["files"]}
            right = f"sha256:{sha256(file.read_bytes()).hexdigest()}"
            stale += hashes.get("references/REFERENCE.md") != right
    return float(stale)
