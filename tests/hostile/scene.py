"""A project that would act, what is the person's beside it, and what a command did there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.forked import run_forked
from tests.golden.forked_commands import WATCH as FORKED_WATCH
from tests.hostile.canary import CANARY

from fast_agent.config.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.hostile.canary import Canary

PROGRAM = Path(sys.executable).with_name("fast-agent")
WATCH = Path(__file__).parent / "watch"
PRIVATE = {
    "private.md": f"---USER\n{CANARY}\n---ASSISTANT\n{CANARY}\n",
    "rc": f"---USER\n{CANARY}\n",
}
"""What the person has beside the project."""

KEYS = tuple(provider.key_variables[0] for provider in PROVIDERS.values())
"""Variables that hold a key of the person."""

_IN_OPENED = re.compile(r"\d+|\.[0-9a-f]{32}\.tmp")

Done: TypeAlias = "subprocess.CompletedProcess[str]"


@dataclass
class Scene:
    """A project, what is the person's beside it, and what was recorded."""

    directory: Path
    canary: Canary

    @classmethod
    def made(cls, directory: Path, canary: Canary) -> Scene:
        """Make the directories of a scene."""
        scene = cls(directory, canary)
        for one in (scene.project, scene.private, scene.home):
            one.mkdir(mode=0o755)
        (directory / "own.md").write_text("---\nmodel: passthrough\n---\nHi.\n")
        (directory / "items.jsonl").write_text('"hi"\n')
        (directory / "dumped").mkdir()
        for name, text in PRIVATE.items():
            (scene.private / name).write_text(text)
        return scene

    @property
    def project(self) -> Path:
        return self.directory / "desk"

    @property
    def private(self) -> Path:
        return self.directory / "private"

    @property
    def home(self) -> Path:
        return self.directory / "home"

    def run(self, command: list[str], stdin: str, **environ: str) -> Done:
        """Run a program in the project, and record what it does."""
        return subprocess.run(
            command,
            cwd=self.project,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self.environ(**environ),
        )

    def fork(self, arguments: list[str], stdin: str = "", **environ: str) -> Done:
        """Run a command of `fast-agent` in a fork of a warm process, and record what it does."""
        environ[FORKED_WATCH] = str(WATCH / "sitecustomize.py")
        return run_forked(arguments, self.project, self.environ(**environ), stdin)

    def recorded(self) -> list[tuple[str, str]]:
        """What happened that nobody allowed."""
        text = (self.directory / "log").read_text()
        found = [tuple(json.loads(line)) for line in text.splitlines()]
        own = (str(self.home), str(self.directory / "dumped"), "../dumped/")
        return [
            (kind, what)
            for kind, what in found
            # Histories and dumps are written relative to a directory that was opened before.
            if not (kind == "write" and (what.startswith(own) or _IN_OPENED.fullmatch(what)))
            and "ldconfig" not in what
        ]

    def files(self) -> dict[str, bytes]:
        """The files of the project."""
        every = sorted(self.project.rglob("*"))
        return {str(one): one.read_bytes() for one in every if one.is_file()}

    @contextmanager
    def start(self, command: list[str]) -> Generator[subprocess.Popen[str]]:
        """Start a command that is talked to; it does not outlive the block."""
        process = subprocess.Popen(
            command,
            cwd=self.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environ(),
        )
        with process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a command, whose log starts empty."""
        log = self.directory / "log"
        log.write_text("")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "FAST_AGENT_HOME": str(self.home),
            "CANARY_KEY": CANARY,
            **dict.fromkeys(KEYS, CANARY),
            "GENERIC_BASE_URL": self.canary.url,
            "AZURE_OPENAI_ENDPOINT": self.canary.url,
            "AWS_REGION": "eu-west-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "PYTHONPATH": str(WATCH),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOSTILE_LOG": str(log),
            "HOSTILE_ROOT": str(self.project),
            "HOSTILE_AWAY": str(self.private),
            **more,
        }


def nothing_happened(scene: Scene, done: Done) -> None:
    """Check that a command reached nothing, and says nothing it must not."""
    reported = done.stdout + done.stderr
    recorded = scene.recorded()
    assert recorded == [], f"{recorded}\n{reported}"
    assert scene.canary.heard == []
    assert {one.name: one.read_text() for one in scene.private.iterdir()} == PRIVATE
    assert CANARY not in reported
    assert "Traceback" not in reported, reported
