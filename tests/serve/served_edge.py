"""`fast-agent serve` over both transports, spoken to in both eras of the protocol."""

from __future__ import annotations

import json
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.patience import PATIENCE
from tests.processes import unexpected
from tests.serve.agent_process import PROGRAM, environ_in
from tests.serve.served import META

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from mcp.client import Transport


ERAS = ("legacy", "2026-07-28")
"""The eras of the protocol, as the SDK's client names them."""

EDGES = ("http", *(f"stdio {era}" for era in ERAS))
"""How a server is reached: over HTTP by clients of both eras, over stdio by one of either."""


class EdgeWorld:
    """Cards in a directory, and a server of them that watches.

    Args:
        directory: Where everything is.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cards = directory / "cards"
        self.cards.mkdir()
        self._log = directory / "stderr.log"
        self._read = 0

    def card(self, file: str, about: str, **fields: str) -> Path:
        path = self.cards / f"{file}.md"
        path.write_text(card_text(about, **fields))
        return path

    @asynccontextmanager
    async def over_http(self, *options: str) -> AsyncGenerator[tuple[Client, ...]]:
        """Serve the cards, and connect a client of each era."""
        process = self._started(options)
        try:
            await self.wait_for_log("serving at ")
            url = self._log.read_text().partition("serving at ")[2].split()[0]
            async with AsyncExitStack() as stack:
                clients = [Client(url, mode=era, cache=None) for era in ERAS]
                yield tuple([await stack.enter_async_context(one) for one in clients])
            process.terminate()
            assert await anyio.to_thread.run_sync(process.wait, PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
        self._see_that_all_went_well()

    @asynccontextmanager
    async def over_stdio(self, era: str, *options: str) -> AsyncGenerator[tuple[Client, ...]]:
        """Have a client of an era start a server of the cards."""
        first, *rest = [*self._command(options), "--transport", "stdio"]
        server = StdioServerParameters(
            command=first, args=rest, cwd=self.directory, env=environ_in(self.directory)
        )
        with self._log.open("w") as log:
            transport: Transport = stdio_client(server, log)
            async with Client(transport, mode=era, cache=None) as client:
                await client.list_tools()  # without a handshake nothing waits for its start
                yield (client,)
        self._see_that_all_went_well()

    def served(self, edge: str, *options: str) -> AbstractAsyncContextManager[tuple[Client, ...]]:
        """Serve the cards over an edge: `http`, or `stdio` and the era."""
        transport, _, era = edge.partition(" ")
        if transport == "http":
            return self.over_http(*options)
        return self.over_stdio(era, *options)

    async def wait_for_log(self, words: str) -> None:
        """Wait until the server says something it did not say before."""

        def said() -> bool:
            text = self._log.read_text()
            place = text.find(words, self._read)
            if place >= 0:
                self._read = place + len(words)
            return place >= 0

        await until(said, lambda: f"`{words}` is told, after {self._log.read_text()!r}")

    def _started(self, options: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._log.open("w") as log:
            return subprocess.Popen(
                [*self._command(options), "--port", "0"],
                stderr=log,
                cwd=self.directory,
                env=environ_in(self.directory),
            )

    def _command(self, options: Sequence[str]) -> list[str]:
        command = [str(PROGRAM), "serve", "--card", "cards", "--watch", "--no-session"]
        return [*command, *options]

    def _see_that_all_went_well(self) -> None:
        assert "Traceback" not in self._log.read_text()


def card_text(about: str, **fields: str) -> str:
    fields = {"model": "passthrough", "description": about, **fields}
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\n{lines}---\nHi.\n"


async def until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    with anyio.move_on_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - it comes true in another process
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"it never came that {what()}")


async def listed(client: Client, tools: Mapping[str, str]) -> None:
    """Wait until the tools are these, by name and description."""
    found: dict[str, str] = {}
    with anyio.move_on_after(PATIENCE):
        while found != tools:
            await anyio.sleep(0.02)
            found = {one.name: one.description or "" for one in (await client.list_tools()).tools}
        return
    raise AssertionError(f"the tools are {found}, and not {tools}")


async def ask(client: Client, agent: str, text: str) -> str:
    result = await client.call_tool(agent, {"message": text})
    assert result.is_error is False, result.content
    return "".join(getattr(block, "text", "") for block in result.content)


class StdioTalk:
    """A server over stdio whose client writes what it likes.

    Args:
        directory: Where the cards are, in `cards`.
        options: Of `fast-agent serve`.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--card", "cards", "--transport", "stdio", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=environ_in(directory),
        )

    def write(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has gone"
        return json.loads(line)

    def end(self) -> bytes:
        """Hang up; gives what went to standard error of a server that ended in good order."""
        _, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        assert b"Traceback" not in err
        return unexpected(err.decode()).encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.kill()
        self.process.communicate()


def request_line(method: str, params: Mapping[str, Any], request_id: int) -> bytes:
    """A request of the newest protocol, as a line."""
    meta = {**META, **params.get("_meta", {})}
    one = {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": method,
        "params": {**params, "_meta": meta},
    }
    return json.dumps(one).encode() + b"\n"


def peak_kib(pid: int) -> int:
    """The most memory a process ever held."""
    with open(f"/proc/{pid}/status") as lines:  # noqa: PTH123 - it is not a file of a disk
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
