"""A guide of 10,000 documents: one document over stdio, the index, and searches."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from tests.resources.questions.answers import missed, questions

from bench.figure import Figure, Goal
from bench.process import BenchError
from bench.resource_files import document_path, queries, write_documents
from bench.resource_peers import compare_all, guide_peer, line
from bench.samples import Samples
from bench.stdio_client import StdioClient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.comparison import Values
    from bench.resource_peers import ResourcePeer
    from bench.setup import Setup

ROUNDS = 3
READS, PEER_READS = 1_000, 40
QUERIES = 100
CATEGORY = "library"
SHELF, SHELVED = "shelf", 150
"""A category that is read whole."""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure a guide; the limits are reading the file, and visiting every file of the root."""
    count = 1_000 if setup.quick else 10_000
    top = setup.work / "guide"
    root = write_documents(top / CATEGORY, count)
    _write_shelf(top / "shelves" / SHELF)
    homes = iter(range(1000))

    def ours() -> Values:
        answer = setup.ours("guide.py", root, count, *queries(QUERIES))
        return {
            **_read_ours(setup, root, count),
            "shelf": _read_shelf(setup, top / "shelves"),
            "index": answer["index"] * 1e3,
            "templates": answer["templates"] * 1e3,
            "page": answer["page"] * 1e3,
            "fill": answer["fill"],
            "search": answer["search"] * 1e3,
            "search_cpu": answer["search_cpu"] * 1e3,
        }

    def limit() -> Values:
        walk = setup.ours("guide.py", root, count, *queries(QUERIES))["walk"]
        return {"read": _read_files(root, count), "index": walk * 1e3}

    def theirs(peer: ResourcePeer) -> Values:
        return _read_theirs(setup, peer, top, setup.work / f"peer-{next(homes)}", count)

    (done,) = compare_all(
        setup, ours, limit=limit, peers={guide_peer(setup): theirs}, rounds=ROUNDS
    ).values()
    of = f"{count:,} documents"
    yield line(done, "read", f"guide, one of {of}, over stdio", "ms", Goal(1))
    yield line(done, "index", f"guide, index of {of}", "ms", Goal(300))
    yield line(done, "templates", f"guide, templates, of {of}", "ms", Goal(50))
    yield line(done, "page", f"guide, first page of a list, of {of}", "ms", Goal(300))
    whole = f"guide, documents given of a category of {SHELVED}"
    yield line(done, "shelf", whole, "", Goal(SHELVED, at_least=True))
    yield line(done, "search", f"search of {of}, median of {QUERIES}", "ms", Goal(10))
    yield line(done, "search_cpu", "the same, processor time", "ms", Goal(10))
    yield line(done, "fill", f"search index of {of}, made once", "s")
    yield from (_answered(name) for name in ("tuned", "held_out"))


def _answered(name: str) -> Figure:
    asked = len(questions(name))
    reported = f"questions answered by the first hit, {name.replace('_', ' ')}, of {asked}"
    right = asked - len(missed(name))
    goal = Goal(asked * 0.8, at_least=True)
    return Figure(name=reported, unit="", ours=Samples((right,)), goal=goal)


def _write_shelf(place: Path) -> None:
    place.mkdir(parents=True)
    for number in range(SHELVED):
        (place / f"note-{number:03}.md").write_text(f"# Note {number:03}\n", "utf-8")


def _read_shelf(setup: Setup, root: Path) -> int:
    command = (setup.program, "resources", "serve", "--guide", root)
    with StdioClient(command, cwd=setup.work, environ=setup.environ) as client:
        client.open()
        return _count_notes(client, f"guide://category/{SHELF}")


def _count_notes(client: StdioClient, uri: str) -> int:
    """Return how many documents of the shelf a read gives."""
    text = client.ask("resources/read", {"uri": uri})["contents"][0]["text"]
    return sum(f"# Note {number:03}" in text for number in range(SHELVED))


def _numbers(count: int, reads: int) -> Sequence[int]:
    """Choose documents that are far from each other."""
    return [step * 7919 % count for step in range(1, reads + 1)]


def _read_files(root: Path, count: int) -> float:
    times: list[float] = []
    for number in _numbers(count, READS):
        start = perf_counter()
        with open(root / document_path(number), "rb", buffering=0) as file:  # noqa: PTH123
            file.read()
        times.append(perf_counter() - start)
    return median(times) * 1e3


def _read_ours(setup: Setup, root: Path, count: int) -> Values:
    command = (setup.program, "resources", "serve", "--guide", root)
    with StdioClient(command, cwd=setup.work, environ=setup.environ) as client:
        client.open()
        uris = [
            {"uri": f"guide://document/{document_path(number)}"}
            for number in _numbers(count, READS)
        ]
        text = client.ask("resources/read", uris[0])["contents"][0]["text"]
        if "# " not in text:
            raise BenchError("a read did not give the document")
        return {"read": median(client.time_each("resources/read", uris)) * 1e3}


def _read_theirs(setup: Setup, peer: ResourcePeer, docroot: Path, home: Path, count: int) -> Values:
    """Read with the peer, whose project is made by its own tools."""
    settings = home / "settings"
    settings.mkdir(parents=True)
    command = (*peer.command, "--configdir", settings, "--docroot", docroot, "stdio")
    environ = {**setup.environ, "PWD": str(home)}
    with StdioClient(command, cwd=home, environ=environ) as client:
        client.open()
        _call(client, "set_project", {"name": "bench"})
        made = {"type": "category", "name": CATEGORY, "dir": CATEGORY, "patterns": ["**/*.md"]}
        _call(client, "category_collection_add", made)
        uris = [
            {"uri": f"guide://{CATEGORY}/{_quoted(number)}"}
            for number in _numbers(count, PEER_READS)
        ]
        text = client.ask("resources/read", uris[0])["contents"][0]["text"]
        if "No matching" in text or "# " not in text:
            raise BenchError("a read did not give the document")
        shelf = {"type": "category", "name": SHELF, "dir": f"shelves/{SHELF}"}
        _call(client, "category_collection_add", {**shelf, "patterns": ["**/*.md"]})
        return {
            "shelf": _count_notes(client, f"guide://{SHELF}/note-*"),
            "read": median(client.time_each("resources/read", uris)) * 1e3,
        }


def _quoted(number: int) -> str:
    return document_path(number).removesuffix(".md").replace("/", "%2F")


def _call(client: StdioClient, tool: str, arguments: Mapping[str, object]) -> None:
    answer = client.ask("tools/call", {"name": tool, "arguments": {"args": arguments}})
    text = answer["content"][0]["text"]
    if answer.get("isError") or '"success": false' in text:
        raise BenchError(f"`{tool}`: {text[:100]}")
