"""The peers that serve resources, each from the package registry in an environment of its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.comparison import Comparison, Values, by_name
from bench.peers import OLDEST, find_python
from bench.process import BenchError, run_process
from bench.samples import interleave
from bench.setup import HERE, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bench.figure import Figure, Goal
    from bench.setup import Setup

REQUIREMENTS = {"fastmcp": "fastmcp>=4,<5", "mcp-guide": "mcp-guide"}
"""What is installed, by distribution. The SDK comes with fastmcp, which is built on it."""

_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ResourcePeer:
    """A peer, or why there is none.

    Args:
        name: Its distribution.
        version: Its version; empty where it is missing.
        command: What starts its server; the directory it serves is the last argument to add.
        note: Why it is missing.
    """

    name: str
    version: str = ""
    command: tuple[str | Path, ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """Return name and version."""
        return f"{self.name} {self.version}".strip()


def fastmcp_peer(setup: Setup) -> ResourcePeer:
    """Return fastmcp's provider of skills."""
    return _peer(setup, "fastmcp", "fastmcp", "skills_fastmcp.py")


def sdk_peer(setup: Setup) -> ResourcePeer:
    """Return the SDK's low-level server over contents that are ready."""
    return _peer(setup, "mcp", "fastmcp", "skills_sdk.py")


def guide_peer(setup: Setup) -> ResourcePeer:
    """Return mcp-guide."""
    return _peer(setup, "mcp-guide", "mcp-guide", None)


def compare_all(
    setup: Setup,
    ours: Callable[[], Values],
    *,
    limit: Callable[[], Values] | None = None,
    peers: Mapping[ResourcePeer, Callable[[ResourcePeer], Values]],
    rounds: int,
) -> dict[str, Comparison]:
    """Measure ours, the limit and each peer in turn.

    Args:
        setup: How to measure.
        ours: Measures ours.
        limit: Measures the limit.
        peers: How each peer is measured; one that fails is not measured again.
        rounds: How many values of each are kept.

    Returns:
        A comparison with each peer, by its name, all with the same values of ours.
    """
    measures: dict[str, Callable[[], Values]] = {"": ours}
    if limit is not None:
        measures["limit"] = limit
    notes = {peer.name: peer.note for peer in peers}
    for peer, measure in peers.items():
        if not peer.note:
            measures[peer.name] = _trial(peer, measure, notes)
    values = interleave(measures, rounds=setup.rounds(rounds))
    sides = {
        name: by_name([one for one in found if one]) if not notes.get(name) else {}
        for name, found in values.items()
    }
    return {
        peer.name: Comparison(
            sides[""],
            sides.get("limit", {}),
            sides.get(peer.name, {}),
            f"({peer.label})" if not notes[peer.name] else f"{peer.name} {notes[peer.name]}",
        )
        for peer in peers
    }


def line(done: Comparison, value: str, name: str, unit: str, goal: Goal | None = None) -> Figure:
    """Make a line of the table that names the peer it is compared with."""
    figure = done.figure(value, name, unit, goal, note=done.peer_note)
    return figure if figure.peer is not None or done.peer_note[:1] != "(" else _silent(figure)


def _silent(figure: Figure) -> Figure:
    return replace(figure, peer_note="")


def _trial(
    peer: ResourcePeer, measure: Callable[[ResourcePeer], Values], notes: dict[str, str]
) -> Callable[[], Values]:
    def attempt() -> Values:
        if notes[peer.name]:
            return {}
        try:
            return measure(peer)
        except BenchError as error:
            notes[peer.name] = f"failed: {str(error).splitlines()[-1][:120]}"
            return {}

    return attempt


def _peer(setup: Setup, name: str, environment: str, script: str | None) -> ResourcePeer:
    if not setup.peers_asked:
        return ResourcePeer(name, note="not asked for")
    place = ROOT / ".venvs" / environment
    python = place / "bin" / "python"
    try:
        if not (place / ".ready").exists():
            _install(place, REQUIREMENTS[environment])
        code = f"from importlib.metadata import version; print(version({name!r}))"
        version = run_process((python, "-P", "-c", code), cwd=place, environ=os.environ).output
    except BenchError as error:
        return ResourcePeer(name, note=str(error).splitlines()[-1][:120])
    program = place / "bin" / name
    command = (program,) if script is None else (python, "-P", HERE / "peer" / script)
    return ResourcePeer(name, version.strip(), command)


def _install(place: Path, requirement: str) -> None:
    base = find_python()
    if base is None:
        raise BenchError(f"not installed: it needs Python 3.{OLDEST} or newer")
    shutil.rmtree(place, ignore_errors=True)
    pip: Sequence[str | Path] = (place / "bin" / "python", "-m", "pip")
    options = ("--disable-pip-version-check", "install", "--quiet", requirement)
    for command in ((base, "-m", "venv", place), (*pip, *options)):
        try:
            run_process(command, cwd=ROOT, environ=os.environ, timeout=_SECONDS)
        except BenchError as error:
            raise BenchError(f"not installed: {str(error).splitlines()[-1][:100]}") from error
    (place / ".ready").touch()
