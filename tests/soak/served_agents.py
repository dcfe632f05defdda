"""Served agents: a real `fast-agent serve` in a process of its own, over HTTP or stdio."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.soak.heap_state import INSIDE, PLACE
from tests.soak.process_state import children_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcp.client import Transport

STARTS_IN = 120.0
STOPS_IN = 60.0

Scope = Literal["shared", "connection", "request"]


def _command(roots: Sequence[Path], scope: Scope) -> list[str]:
    program = str(Path(sys.executable).with_name("fast-agent"))
    cards = [part for root in roots for part in ("--card", str(root))]
    return [program, "serve", *cards, "--multi-card", "--watch", "--instance-scope", scope]


def _environ(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    paths = [str(INSIDE), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), PLACE: str(heap_file(home))}
    return {**kept, **own, "HOME": str(home), "FAST_AGENT_HOME": str(home)}


def heap_file(home: Path) -> Path:
    """Return the file in which the server of a home answers what its objects take."""
    return home / "heap.json"


class HttpAgents:
    """A server over HTTP.

    Args:
        roots: The directories of its cards.
        scope: Who shares a conversation.
        home: Its own place for state and its log.

    Attributes:
        conversations: How many were begun that nobody can say the end of.
    """

    def __init__(self, roots: Sequence[Path], scope: Scope, home: Path) -> None:
        self.scope: Scope = scope
        self.name = f"http, {scope}"
        self.conversations = 0
        home.mkdir(parents=True)
        self.heap_file = heap_file(home)
        self.log = home / "stderr.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*_command(roots, scope), "--port", "0"],
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=home,
                env=_environ(home),
            )
        self.url = self._await_address()
        self.port = int(self.url.split(":")[2].split("/")[0])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @asynccontextmanager
    async def client(self, mode: str = "auto", **more: Any) -> AsyncGenerator[Client]:
        """Connect a client."""
        # Without a handshake it cannot say that it leaves: what it began is held for a while.
        self.conversations += mode != "legacy" and self.scope == "connection"
        async with Client(self.url, mode=mode, cache=None, **more) as client:
            yield client

    def stop(self) -> int | None:
        """Ask it to stop, as an operator would; returns its exit status, None where it hangs."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOPS_IN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None

    def kill_unless_stopped(self) -> None:
        """Leave no server behind where a soak broke off."""
        if self.running:
            self._process.kill()
            self._process.wait()

    def _await_address(self) -> str:
        end = time.monotonic() + STARTS_IN
        while time.monotonic() < end and self.running:
            for line in self.log.read_text("utf-8").splitlines():
                if line.startswith("serving at "):
                    return line.removeprefix("serving at ")
            time.sleep(0.05)
        self._process.kill()
        raise RuntimeError(f"the server does not start:\n{self.log.read_text('utf-8')}")


class StdioAgents:
    """A server over stdio, with its one client.

    Args:
        roots: The directories of its cards.
        scope: Who shares a conversation.
        home: Its own place for state and its log.
    """

    def __init__(self, roots: Sequence[Path], scope: Scope, home: Path) -> None:
        self.scope: Scope = scope
        self.name = f"stdio, {scope}"
        self.conversations = 0
        home.mkdir(parents=True)
        self.heap_file = heap_file(home)
        self.log = home / "stderr.log"
        command, *arguments = [*_command(roots, scope), "--transport", "stdio"]
        self._parameters = StdioServerParameters(
            command=command, args=arguments, env=_environ(home), cwd=home
        )
        self._client: Client | None = None
        self.pid = 0

    @asynccontextmanager
    async def running_client(self) -> AsyncGenerator[None]:
        """Start the server, and connect the one client it has."""
        before = set(children_of(os.getpid()))
        with self.log.open("w", encoding="utf-8") as log:
            transport: Transport = stdio_client(self._parameters, log)
            async with Client(transport, mode="legacy", cache=None) as client:
                (self.pid,) = set(children_of(os.getpid())) - before
                self._client = client
                yield
                self._client = None

    @property
    def running(self) -> bool:
        return self.pid in children_of(os.getpid())

    @asynccontextmanager
    async def client(self, mode: str = "auto", **more: Any) -> AsyncGenerator[Client]:
        """Lend the client."""
        assert self._client is not None
        yield self._client


ServedAgents = HttpAgents | StdioAgents
