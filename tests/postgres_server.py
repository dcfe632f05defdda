"""A private PostgreSQL cluster on loopback, in a temporary directory, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from tests.processes import children_of, ending_with_parent, free_port, lives, start_on_free_port

PASSWORD = "s3cret-of-the-database"
USER = "agents"
UNPRIVILEGED = "nobody"
_SECONDS = 60.0


def postgres_programs() -> Path | None:
    """Find the directory of PostgreSQL's programs; None where it is not installed."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    return None


def why_not() -> str | None:
    """Return why no cluster can be started; None where one can."""
    if postgres_programs() is None:
        return "PostgreSQL is not installed"
    if find_spec("psycopg") is None:
        return "the extra `postgres` is not installed"
    return None


class PostgresServer:
    """A cluster, started and stopped by hand.

    Args:
        settings: Settings beyond those of every cluster, as `postgres -c` takes them.
        directory: Where its data lies; None makes a temporary directory. A cluster needs an
            unprivileged user where the tests run as root, so the directory is given to it.
    """

    def __init__(self, *settings: str, directory: Path | None = None) -> None:
        programs = postgres_programs()
        assert programs is not None
        self._programs = programs
        self._settings = settings
        self._own = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="fast-agent-pg-"))
        self._user = UNPRIVILEGED if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    def __enter__(self) -> Self:
        self.directory.chmod(0o755)
        if self._user is not None:
            shutil.chown(self.directory, self._user)
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        data = self.directory / "data"
        self._run(
            "initdb",
            "-D",
            str(data),
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "--no-sync",
            "--locale=C",
            "--encoding=UTF8",
            f"--pwfile={secret}",
        )
        start_on_free_port(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._own:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Its first process."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """The address with the password."""
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        """The address through another port, as of a proxy."""
        return f"postgres://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"

    @property
    def log(self) -> str:
        """What the server logged."""
        return (self.directory / "log").read_text()

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        given = [one for setting in self._settings for one in ("-c", setting)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *ending_with_parent("QUIT"),
                    self._programs / "postgres",
                    "-D",
                    self.directory / "data",
                    "-p",
                    str(self.port),
                    "-k",
                    "",
                    "-c",
                    "listen_addresses=127.0.0.1",
                    *given,
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._user,
                start_new_session=True,
            )
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        end = time.monotonic() + _SECONDS
        while subprocess.run(ready, check=False).returncode:
            assert self._process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it with all its processes, as a machine that fails; safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        # Left to themselves, its children may still answer before they notice that it is gone.
        children = children_of(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.wait()
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if any(map(lives, children)):
                time.sleep(0.02)
                continue
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", self.port))
                except OSError:
                    time.sleep(0.02)
                    continue
                return

    def _run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run(
            [self._programs / program, *arguments],
            cwd="/",
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
