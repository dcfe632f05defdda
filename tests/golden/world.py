"""World: a directory with cards, skills and documents, and the server processes in it."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.golden.stage import HERE
from tests.patience import PATIENCE, wait_until
from tests.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = HERE.parents[1]
FILES = HERE / "files"
"""What `write_files.py` kept, by the path it has in a world."""

MODIFIED = 1_767_225_600
"""When every file of the world was modified: 2026-01-01."""

_ENTRY = "from fast_agent.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a source tree.

    Args:
        tree: Where `src` is.
    """

    tree: Path = ROOT

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command line, which neither an installed program nor a directory changes."""
        return [sys.executable, "-P", "-c", _ENTRY, *arguments]

    def command_of_commands(self) -> list[str]:
        """Return the command line of `forked_commands.py`."""
        return [sys.executable, "-P", str(HERE / "forked_commands.py")]

    def environ(self, directory: Path) -> dict[str, str]:
        """Return the whole environment of a process in a directory."""
        home = str(directory / "home")
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(self.tree / "src"),
            "HOME": home,
            "FAST_AGENT_HOME": home,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }


def make_world(directory: Path, fill: Mapping[str, int], *, files: bool = False) -> Path:
    """Copy the world into a directory, the same to the second.

    Args:
        directory: Where to.
        fill: By directory of the world, how many documents are made in it.
        files: Whether the files that the recorded commit wrote are put where they were.

    Returns:
        The copy.
    """
    world = directory / "world"
    shutil.copytree(
        HERE / "world", world, ignore=shutil.ignore_patterns("__pycache__", ".gitattributes")
    )
    (world / "home").mkdir()
    for name, count in fill.items():
        (world / name).mkdir(parents=True)
        for number in range(count):
            (world / name / f"{number:04}.md").write_text(f"# Number {number}\n", "utf-8")
    if files:
        unpack_files(world)
    for path in (world, *world.rglob("*")):
        os.utime(path, (MODIFIED, MODIFIED))
    return world


def unpack_files(world: Path) -> None:
    """Put the files that the recorded commit wrote where its program had them.

    Texts in the home hold `<dir>` where they name the world. Everything in the home is its owner's.
    """
    sessions = session_ids()
    for packed in sorted(FILES.rglob("*")):
        if packed.is_dir():
            continue
        path = world / packed.relative_to(FILES)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if packed.suffix == ".xz":
            name, _, suffix = path.stem.partition(".")
            session = path.with_name(f"{sessions[name]}.{suffix}")
            session.write_bytes(lzma.decompress(packed.read_bytes()))
            continue
        text = packed.read_text("utf-8")
        home = path.is_relative_to(world / "home")
        path.write_text(text.replace("<dir>", str(world)) if home else text, "utf-8")
        path.chmod(0o600)


def session_ids() -> dict[str, str]:
    """Return the ids of the sessions that the recorded commit wrote, by their names here."""
    return json.loads((FILES / "home/sessions.json").read_text("utf-8"))


def change_file(world: Path, verb: str, argument: Any) -> None:
    """Write a file while a server runs (`write`: `[path, text]`), or remove one (`remove`)."""
    if verb == "remove":
        (world / argument).unlink()
        return
    name, text = argument
    path = world / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


class ServerProcess:
    """A process of the program in a world; killed in the end where it still runs."""

    def __init__(self, program: Program, command: Sequence[str], world: Path) -> None:
        self.world = world
        self.environ = program.environ(world)
        self._log = world / "home" / "stderr.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=world,
                env=self.environ,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        process = self.process
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text("utf-8", "replace")

    def port(self) -> int:
        """Wait until the server says where it listens."""

        def ready() -> bool:
            assert self.process.poll() is None, f"the server ended: {self.log}"
            return "serving at " in self.log and "\n" in self.log.partition("serving at ")[2]

        wait_until(ready)
        address = self.log.partition("serving at ")[2].split()[0]
        return int(address.rpartition(":")[2].partition("/")[0])

    def signal(self, name: str) -> None:
        """Send a signal: `TERM`, `INT`."""
        self.process.send_signal(signal.Signals[f"SIG{name}"])

    def end(self) -> None:
        """Ask it to stop, and not to wait for calls that are under way."""
        for name in ("TERM", "INT"):
            if self.process.poll() is None:
                self.signal(name)
        self.exit_status()

    def exit_status(self) -> int:
        """Wait until it ends."""
        return self.process.wait(PATIENCE)
