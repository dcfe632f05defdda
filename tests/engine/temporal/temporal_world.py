"""A world of runs on Temporal: cards in a directory, a client, and workers in this process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio.worker import Replayer
from tests.patience import PATIENCE

from fast_agent.app import FastAgent
from fast_agent.engine.edition import EditionChoices
from fast_agent.engine.part_store import open_parts
from fast_agent.engine.temporal.connection import DEFAULT_QUEUE, TemporalOptions, connect
from fast_agent.engine.temporal.runs import PinnedEdition, TemporalRuns
from fast_agent.engine.temporal.worker import (
    EditionHost,
    EditionInterceptor,
    WorkerOptions,
    run_worker,
)
from fast_agent.engine.temporal.workflow import AgentRun
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from temporalio.client import Client, WorkflowHandle, WorkflowHistory
    from tests.temporal_server import TemporalServer

    from fast_agent.engine.part_store import Cipher, PartStore
    from fast_agent.engine.temporal.runs import RunResult

T = TypeVar("T")
_numbers = count(1)


async def eventually(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again and again until the answer is true."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await ask()
            if answer:
                return answer
            await asyncio.sleep(0.05)


class TemporalWorld:
    """Cards, a client and workers.

    Args:
        directory: Holds the cards, and all that is kept.
        server: The server.
        client: The connection to it.
        store: Keeps editions and parts.
        options: Names a queue of this world's own.
        cipher: Encrypts what the server is given, or None.

    Attributes:
        environ: Further variables of the environment of its programs.
    """

    def __init__(
        self,
        directory: Path,
        client: Client,
        store: PartStore,
        options: TemporalOptions,
        cipher: Cipher | None,
    ) -> None:
        self.directory = directory
        self.client = client
        self.store = store
        self.options = options
        self.cipher = cipher
        self.environ: dict[str, str] = {}
        self.runs = TemporalRuns(client, options, store, heartbeat_seconds=2.0)

    @property
    def query(self) -> str:
        """Finds the workflows of this world's queue."""
        return f"TaskQueue = '{self.options.queue}'"

    def program(self, workspace: Path | None = None) -> FastAgent:
        """Make a program, as workers make theirs."""
        config = self.directory / "config.yaml"
        return FastAgent(
            cwd=workspace or self.directory,
            environ={"FAST_AGENT_HOME": str(self.directory / "home"), **self.environ},
            config_path=config if config.exists() else None,
            ignore_config=not config.exists(),
        )

    def write(self, **files: str) -> None:
        """Write cards; the names of files are those of the arguments, `.yaml` behind them."""
        for name, text in files.items():
            (self.directory / f"{name}.yaml").write_text(text)

    async def pin(self, *paths: str) -> PinnedEdition:
        """Pin cards as they are now."""
        program = self.program()
        program.load_agents(*(paths or (".",)))
        return await self.runs.pin(program, EditionChoices())

    async def start(
        self, agent: str, message: str = "go", edition: PinnedEdition | None = None, **more: Any
    ) -> WorkflowHandle[Any, Any]:
        """Start a run of the cards as they are now, or of an edition."""
        pinned = edition or await self.pin()
        run_id = f"{self.options.queue}-{next(_numbers)}"
        return await self.runs.start(run_id, pinned, agent, Message.user(message), **more)

    async def run(self, agent: str, message: str = "go", **more: Any) -> RunResult:
        """Start a run, and wait for it."""
        return await self.runs.result(await self.start(agent, message, **more))

    def host(self) -> EditionHost:
        """Make the editions of a worker."""
        sealed = self.cipher is not None
        home = self.directory / "editions"
        return EditionHost(self.store, home, self.program, is_sealed=sealed)

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncGenerator[EditionHost]:
        """Run a worker; who waits for its runs is cancelled once it fails."""
        stop, body = asyncio.Event(), asyncio.current_task()
        assert body is not None
        async with self.host() as host:
            given = WorkerOptions(drain_seconds=1.0, **options)
            running = asyncio.create_task(
                run_worker(self.client, self.options, given, host, self.store, stop)
            )
            running.add_done_callback(lambda _: stop.is_set() or body.cancel())
            try:
                yield host
            finally:
                stop.set()
                await running

    async def replay(self, history: WorkflowHistory, times: int = 1) -> None:
        """Run the workflow code again over a history, as a worker that knows nothing of the run.

        Raises:
            WorkflowNondeterminismError: It did not do the same.
        """
        for _ in range(times):
            async with self.host() as host:
                replayer = Replayer(
                    workflows=[AgentRun],
                    interceptors=[EditionInterceptor(host)],
                    data_converter=self.client.data_converter,
                )
                await replayer.replay_workflow(history)


@asynccontextmanager
async def temporal_world(
    directory: Path,
    server: TemporalServer,
    cipher: Cipher | None = None,
    options: TemporalOptions | None = None,
) -> AsyncGenerator[TemporalWorld]:
    """Open a world with a queue of its own, or of options."""
    store = open_parts(str(directory / "parts"), cipher)
    given = options or TemporalOptions(address=server.address)
    if given.queue == DEFAULT_QUEUE:
        given = replace(given, queue=f"queue-{next(_numbers)}")
    client = await connect(given, store, cipher)
    yield TemporalWorld(directory, client, store, given, cipher)
