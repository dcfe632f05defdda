"""Settling: what must be true of every server soon after edits and visits have ended."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from mcp.types import ToolListChangedNotification
from tests.soak.clients import STAMP_CALL, VALUE_CALL, WHO_CALL, ask, check_tools, history, text_of
from tests.soak.heap_state import heap_state
from tests.soak.kept_messages import kept_messages
from tests.soak.process_state import process_state
from tests.soak.served_agents import HttpAgents

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.client import Client
    from tests.soak.heap_state import HeapState
    from tests.soak.process_state import ProcessState
    from tests.soak.served_agents import ServedAgents
    from tests.soak.soak import Soak

_LOOKS_EVERY = 0.05
_RESTS = 1.0
"""Seconds in which a server at rest must open and end nothing."""
_RESTS_IN = 60.0
"""Longest time to come to rest: connections and processes that were closed are gone then."""


class Settling:
    """Checks servers at rest, and samples what they hold.

    Args:
        soak: The soak.
        served: The servers.
    """

    def __init__(self, soak: Soak, served: tuple[ServedAgents, ...]) -> None:
        self._soak = soak
        self._findings = soak.findings
        self.served = served
        self.samples: dict[str, list[tuple[float, ProcessState]]] = {one.name: [] for one in served}
        self.heaps: dict[str, list[tuple[float, HeapState]]] = {one.name: [] for one in served}
        self.said: dict[str, int] = {}
        self._changes: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()
        self._before: dict[str, str] = {}

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Have a client stay that hears of changed lists of tools."""
        async with AsyncExitStack() as stack:
            for one in self.served:
                if isinstance(one, HttpAgents) and one.scope == "shared":
                    handler = _Ears(self._changes, one.name)
                    stays = await stack.enter_async_context(
                        one.client("legacy", message_handler=handler)
                    )
                    await stays.list_tools()
            yield

    async def settle(self) -> None:
        """Check that every server has what is on disk."""
        expected: dict[str, str] = {}
        for editor in self._soak.editors:
            expected.update(editor.expected())
        begun = time.monotonic()
        for one in self.served:
            await self._listed(one, expected, begun)
            await self._answered(one)
        if self._before and self._before != expected:
            await self._heard()
        self._before = expected
        self._reported.update(self._changes)
        self._changes.clear()

    async def check_messages(self) -> None:
        """Check that the shared agent remembers everything that was answered, once and in order."""
        agent = self._soak.talker.name
        said = self._soak.said
        for one in self.served:
            if one.scope != "shared":
                continue
            async with one.client("legacy") as client:
                heard = await history(client, agent)
            questions, answers = heard[::2], heard[1::2]
            self._findings.expect(questions == answers, f"{one.name}: a torn history of `{agent}`")
            for name, messages in said.items():
                remembered = [text for text in questions if text.rpartition("-")[0] == name]
                self._findings.expect(
                    remembered == messages,
                    f"{one.name}: {name} said {len(messages)} messages,"
                    f" {len(remembered)} are remembered",
                )
            self._findings.count("messages found again", len(questions))

    async def sample(self) -> None:
        """Note what every server holds while nobody is there."""
        now = self._soak.clock()
        running = [one for one in self.served if one.running]
        states = {one.name: process_state(one.pid) for one in running}
        with anyio.move_on_after(_RESTS_IN):
            rests = False
            while not rests:
                await anyio.sleep(_RESTS)
                before = states
                states = {one.name: process_state(one.pid) for one in running}
                rests = all(_holds_the_same(states[name], before[name]) for name in states)
        for one in running:
            self.samples[one.name].append((now, states[one.name]))
            heap = await to_thread.run_sync(heap_state, one.pid, one.heap_file)
            self.heaps[one.name].append((now, heap))

    def count_messages(self) -> None:
        """Count what was said in the conversations that live as long as their servers.

        The servers are not asked: by then it is more than a client takes at once.
        """
        for one in self.served:
            if one.scope == "shared":
                self.said[one.name] = kept_messages(one.heap_file.parent)

    async def _listed(self, served: ServedAgents, expected: dict[str, str], begun: float) -> None:
        end = begun + self._soak.plan.settles_in
        found: dict[str, str] = {}
        while True:
            async with served.client() as client:
                found = await _descriptions(client, self._soak, served.name)
            if found == expected:
                self._findings.took("settled", time.monotonic() - begun)
                return
            if time.monotonic() > end:
                wrong = {
                    name: (expected.get(name), found.get(name))
                    for name in expected.keys() | found.keys()
                    if expected.get(name) != found.get(name)
                }
                self._findings.wrong(f"{served.name}: stale tools (expected, found): {wrong}")
                return
            await anyio.sleep(_LOOKS_EVERY)

    async def _answered(self, served: ServedAgents) -> None:
        pair, tool = self._soak.pair.number, self._soak.tool.number
        async with served.client() as client:
            text = text_of(await ask(client, "both", STAMP_CALL))
            held = text == f"{pair} {pair}"
            self._findings.expect(held, f"{served.name}: the pair is at {pair}, not {text!r}")
            text = text_of(await ask(client, "keeper", WHO_CALL))
            held = text.partition(" ")[0] == str(self._soak.server.number)
            self._findings.expect(held, f"{served.name}: the server is not {text!r}")
            text = text_of(await ask(client, "teller", VALUE_CALL))
            held = text == str(tool)
            self._findings.expect(held, f"{served.name}: the function is at {tool}, not {text!r}")

    async def _heard(self) -> None:
        """Check that the client that stayed was notified of the change."""
        with anyio.move_on_after(self._soak.plan.settles_in):
            while not self._changes:  # noqa: ASYNC110 - a client counts elsewhere
                await anyio.sleep(_LOOKS_EVERY)
        self._findings.expect(
            bool(self._changes), "no client was notified of the changed list of tools"
        )
        self._findings.count("changes that were notified", sum(self._changes.values()))


def _holds_the_same(now: ProcessState, before: ProcessState) -> bool:
    return (now.descriptors, now.children) == (before.descriptors, before.children)


async def _descriptions(client: Client, soak: Soak, where: str) -> dict[str, str]:
    return check_tools((await client.list_tools()).tools, soak.findings, where)


class _Ears:
    """Counts what notifies a client of changed lists."""

    def __init__(self, changes: Counter[str], name: str) -> None:
        self._changes = changes
        self._name = name

    async def __call__(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changes[self._name] += 1
