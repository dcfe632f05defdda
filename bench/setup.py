"""What all measurements share: where they run, how often, and the peer."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.process import Run, run_json, run_process

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

HERE = Path(__file__).parent
ROOT = HERE.parent
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer, installed.

    Args:
        python: The interpreter of its environment.
        version: Its version.
    """

    python: Path
    version: str

    @property
    def program(self) -> Path:
        """Its command."""
        return self.python.with_name("fast-agent")


@dataclass(frozen=True, slots=True)
class Setup:
    """How to measure.

    Args:
        work: An empty directory that is thrown away afterwards.
        quick: Whether to measure less, for work on the benchmark itself.
        peer: The peer, or None.
        peer_note: Why there is no peer where one was asked for.
    """

    work: Path
    quick: bool = False
    peer: Peer | None = None
    peer_note: str = ""

    def rounds(self, many: int) -> int:
        """How often to measure what is measured `many` times in a full run."""
        return min(many, 3) if self.quick else many

    @property
    def peers_asked(self) -> bool:
        """Whether peers are to be measured."""
        return self.peer is not None or self.peer_note != ""

    @property
    def python(self) -> Path:
        """The interpreter that runs our code."""
        return Path(sys.executable)

    @property
    def program(self) -> Path:
        """Our command."""
        return self.python.with_name("fast-agent")

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of what is measured: no keys, no settings, an empty home."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        home = self.work / "home"
        home.mkdir(exist_ok=True)
        return {**kept, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100"}

    def run(self, *command: str | Path, expect: str = "", cwd: Path | None = None) -> Run:
        """Run a command; raises BenchError where it fails."""
        return run_process(command, cwd=cwd or self.work, environ=self.environ, expect=expect)

    def ours(self, script: str, *arguments: str | Path | int) -> dict[str, Any]:
        """Run a script of `ours/` with our interpreter."""
        command = (self.python, "-P", HERE / "ours" / script, *map(str, arguments))
        return run_json(command, cwd=self.work, environ=self.environ)

    def theirs(self, peer: Peer, script: str, *arguments: str | Path | int) -> dict[str, Any]:
        """Run a script of `peer/` with the peer's interpreter, in a directory of its own.

        The peer takes no configuration beside ours, and would take that of another script.
        """
        place = self.work / "peer" / Path(script).stem
        place.mkdir(parents=True, exist_ok=True)
        command = (peer.python, "-P", HERE / "peer" / script, *map(str, arguments))
        return run_json(command, cwd=place, environ=self.environ)

    @contextmanager
    def served(self, script: str, *arguments: str | int) -> Generator[int]:
        """Run a server of `ours/` that prints its port and ends with its input; gives the port."""
        command = (self.python, HERE / "ours" / script, *map(str, arguments))
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            yield int(server.stdout.readline())
            server.communicate("")
