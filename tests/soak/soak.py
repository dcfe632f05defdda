"""Soak: random editors and random clients at real servers, for as long as is wanted."""

from __future__ import annotations

import logging
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, cast

import anyio
from anyio import to_thread
from tests.soak.clients import (
    Canceller,
    Crowd,
    KeeperCaller,
    PairCaller,
    SeekerOfAgents,
    Talker,
    TellerCaller,
    Vandal,
)
from tests.soak.editors import (
    BurstEditor,
    ExtrasEditor,
    FaultEditor,
    PairEditor,
    RootEditor,
    ServerEditor,
    SlowEditor,
    TalkerEditor,
    ToolEditor,
)
from tests.soak.findings import Findings
from tests.soak.served_agents import HttpAgents, StdioAgents
from tests.soak.settled import Settling

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.soak.clients import Visitor
    from tests.soak.editors import Editor
    from tests.soak.served_agents import ServedAgents

log = logging.getLogger(__name__)

MIN_ROUNDS = 2
MAX_WAIT = 300.0
"""Longest time it goes on to have counted what is needed, in seconds."""

LEAVES_IN = 120.0
"""Longest time for a visit that is under way to end, in seconds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how hard.

    Args:
        seconds: How long it runs.
        seed: What all choices come from.
        round_seconds: How long edits and visits go on before all must settle.
        visitors: How many of each kind of client visit each server at once.
        settles_in: Longest time for a server to take in what is on disk, in seconds.
        needs: What must have been counted before it ends, be it later.
    """

    seconds: float
    seed: int = 1
    round_seconds: float = 8.0
    visitors: int = 2
    settles_in: float = 15.0
    needs: tuple[str, ...] = ()


class Gate:
    """What editors and clients pass before each thing they do."""

    def __init__(self) -> None:
        self._open = anyio.Event()
        self._left = anyio.Event()
        self._inside = 0

    @asynccontextmanager
    async def passed(self) -> AsyncGenerator[None]:
        await self._open.wait()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._left.set()

    def open(self) -> None:
        self._open.set()

    async def close(self) -> bool:
        """Let nobody in; returns whether all left in time."""
        self._open = anyio.Event()
        with anyio.move_on_after(LEAVES_IN):
            while self._inside:
                self._left = anyio.Event()
                await self._left.wait()
        return not self._inside


class Soak:
    """One soak.

    Args:
        place: An empty directory for cards, and for the servers' own files.
        plan: How long and how hard.
    """

    def __init__(self, place: Path, plan: Plan) -> None:
        self.plan = plan
        self._begun = time.monotonic()
        self.findings = Findings(self.clock)
        self._place = place
        self._draw = Random(plan.seed)
        self._gate = Gate()
        self.roots = (place / "cards", place / "more")
        for root in self.roots:
            root.mkdir(parents=True)
        cards, more = self.roots
        self.pair, self.tool, self.talker = (
            PairEditor(cards),
            ToolEditor(cards),
            TalkerEditor(cards),
        )
        self.server = ServerEditor(cards)
        always: list[Editor] = [self.pair, self.tool, self.talker, ExtrasEditor(cards)]
        sometimes: list[Editor] = [
            self.server,
            SlowEditor(cards),
            BurstEditor(cards),
            FaultEditor(cards),
            RootEditor(more),
        ]
        self._always, self._sometimes = always, sometimes
        self._active: list[Editor] = always
        self.said: dict[str, list[str]] = {}
        self.rounds = 0

    @property
    def editors(self) -> list[Editor]:
        return [*self._always, *self._sometimes]

    @property
    def _goes_on(self) -> bool:
        if self.clock() < self.plan.seconds or self.rounds < MIN_ROUNDS:
            return True
        counts = self.findings.counts
        return self.clock() < MAX_WAIT and not all(counts[one] for one in self.plan.needs)

    def clock(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._begun

    async def run(self) -> Settling:
        """Do it; returns what was measured. What went wrong is in `findings`."""
        async with AsyncExitStack() as stack:
            served = await to_thread.run_sync(self._start)
            await _hold(served, stack)
            settling = Settling(self, served)
            async with settling.watched(), anyio.create_task_group() as tasks:
                await settling.settle()
                self._begun = time.monotonic()
                for editor in self.editors:
                    tasks.start_soon(self._edit, editor, self._new_draw())
                for visitor in self._visitors(served):
                    tasks.start_soon(self._visit, visitor, self._new_draw())
                while self._goes_on and all(one.running for one in served):
                    await self._round(settling)
                tasks.cancel_scope.cancel()
            for one in served:
                self.findings.expect(one.running, f"{one.name}: the server has ended by itself")
            for one in served:
                if isinstance(one, HttpAgents):
                    status = await to_thread.run_sync(one.stop)
                    self.findings.expect(status == 0, f"{one.name}: it ended with {status}")
        settling.count_messages()
        for one in served:
            self._read_log(one)
        return settling

    def _start(self) -> tuple[ServedAgents, ...]:
        homes = self._place / "homes"
        return (
            HttpAgents(self.roots, "shared", homes / "shared"),
            HttpAgents(self.roots, "connection", homes / "connection"),
            StdioAgents(self.roots, "request", homes / "request"),
        )

    def _visitors(self, served: tuple[ServedAgents, ...]) -> list[Visitor]:
        found: list[Visitor] = []
        for one in served:
            for number in range(self.plan.visitors if isinstance(one, HttpAgents) else 1):
                found += [
                    PairCaller(one, self.findings, self.pair),
                    TellerCaller(one, self.findings, self.tool),
                    Crowd(one, self.findings),
                    Canceller(one, self.findings),
                    SeekerOfAgents(one, self.findings),
                    KeeperCaller(one, self.findings, self.server),
                ]
                if isinstance(one, HttpAgents):
                    said = self.said if one.scope == "shared" else {}
                    name = f"{one.scope}-{number}"
                    found.append(Talker(one, self.findings, self.talker, said, name))
                    found.append(Vandal(one, self.findings))
        return found

    async def _round(self, settling: Settling) -> None:
        self.rounds += 1
        draw = self._draw
        number = draw.randrange(len(self._sometimes) + 1)
        self._active = [*self._always, *draw.sample(self._sometimes, number)]
        self._gate.open()
        await anyio.sleep(self.plan.round_seconds * (0.5 + draw.random()))
        held = await self._gate.close()
        self.findings.expect(held, "a visit does not end")
        for editor in self.editors:
            await to_thread.run_sync(editor.fix)
        await settling.settle()
        await settling.check_messages()
        self.said.clear()
        await to_thread.run_sync(self.talker.rename)
        await settling.settle()
        await settling.sample()

    async def _edit(self, editor: Editor, draw: Random) -> None:
        while True:
            async with self._gate.passed():
                if editor in self._active:
                    await to_thread.run_sync(editor.edit, draw)
                    self.findings.count("edits")
            await anyio.sleep(draw.expovariate(1 / 0.4))

    async def _visit(self, visitor: Visitor, draw: Random) -> None:
        while True:
            async with self._gate.passed():
                try:
                    await visitor.visit(draw)
                    self.findings.count("visits")
                except Exception as error:
                    log.info("a visit failed", exc_info=error)
                    self.findings.wrong(f"{type(visitor).__name__}: {_story(error)}")
            await anyio.sleep(draw.expovariate(1 / 0.3))

    def _new_draw(self) -> Random:
        return Random(self._draw.random())

    def _read_log(self, served: ServedAgents) -> None:
        text = served.log.read_text("utf-8", errors="replace")
        for piece in text.split("Traceback (most recent call last)")[1:]:
            if "ClosedResourceError" in piece and "mcp/server/streamable_http.py" in piece:
                # The SDK reports this for a request whose session was ended meanwhile.
                self.findings.count("requests of sessions that were ended meanwhile")
                continue
            end = piece.find("\nAgentCards")
            self.findings.wrong(f"{served.name}: it logged a traceback: …{piece[:end][-1500:]}")


async def _hold(served: tuple[ServedAgents, ...], stack: AsyncExitStack) -> None:
    """Have every server end with the soak, however that ends."""
    for one in served:
        if isinstance(one, HttpAgents):
            stack.callback(one.kill_unless_stopped)
    for one in served:
        if isinstance(one, StdioAgents):
            await stack.enter_async_context(one.running_client())


def _story(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return "; ".join(_story(one) for one in group.exceptions)
    return f"{type(error).__name__}: {error}"
