"""The clients and sides of the benchmark of resources; no figure is held to its goal here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from bench.process import BenchError
from bench.resource_files import document_path, queries, skill_name, write_documents, write_skills
from bench.resource_peers import ResourcePeer, compare_all, fastmcp_peer
from bench.setup import HERE, Setup
from bench.stdio_client import StdioClient

if TYPE_CHECKING:
    from pathlib import Path

    from bench.comparison import Values


def test_skills_and_documents_are_the_same_each_time(tmp_path: Path) -> None:
    first, again = (write_skills(tmp_path / name, 3) for name in "ab")
    for number in range(3):
        path = f"{skill_name(number)}/SKILL.md"
        assert (first / path).read_bytes() == (again / path).read_bytes()
    root = write_documents(tmp_path / "documents", 12)
    assert all((root / document_path(number)).is_file() for number in range(12))
    assert queries(5) == queries(5)


def test_a_server_is_asked_told_and_weighed(tmp_path: Path) -> None:
    root = write_skills(tmp_path / "skills", 3)
    command = (sys.executable, "-P", HERE / "ours" / "bare_stdio.py", root)
    uris = [{"uri": f"skill://{skill_name(number)}/SKILL.md"} for number in (0, 1, 2)]
    with StdioClient(command, cwd=tmp_path, environ={}) as client:
        assert client.open()["serverInfo"]["name"] == "bare"
        assert len(client.ask("resources/list")["resources"]) == 6
        assert len(client.time_each("resources/read", uris)) == 3
        assert client.time_all("resources/read", uris) > 0
        assert client.wait_told("notifications/none", 0.01) is None


def test_a_server_that_ends_or_refuses_is_an_error(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('it broke')")
    with (
        StdioClient(command, cwd=tmp_path, environ={}) as client,
        pytest.raises(BenchError, match="it broke"),
    ):
        client.open()


def test_every_peer_stands_beside_the_same_values(tmp_path: Path) -> None:
    sound, broken = ResourcePeer("sound", "1"), ResourcePeer("broken", "2")
    missing = ResourcePeer("missing", note="not installed")
    calls: list[str] = []

    def measure(peer: ResourcePeer) -> Values:
        calls.append(peer.name)
        if peer is broken:
            raise BenchError("no such option")
        return {"t": 4.0}

    peers = dict.fromkeys((sound, broken, missing), measure)
    done = compare_all(Setup(tmp_path), lambda: {"t": 1.0}, peers=peers, rounds=2)
    figures = [one.figure("t", "time", "ms") for one in done.values()]
    assert [figure.ours.values for figure in figures] == [(1.0, 1.0)] * 3
    assert [figure.peer_ratio for figure in figures] == [4.0, None, None]
    assert figures[1].peer_note == "broken failed: no such option"
    assert figures[2].peer_note == "missing not installed"
    assert calls == ["sound", "broken", "sound", "sound"]


def test_no_peer_is_installed_unless_asked_for(tmp_path: Path) -> None:
    assert fastmcp_peer(Setup(tmp_path)).note == "not asked for"
